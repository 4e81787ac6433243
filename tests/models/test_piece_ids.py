"""The offset of sentence pieces in a model's folder, for the program that summarizes."""

import json
import pathlib
import shutil

import pytest
from absl import flags

import etcmodel
from etcmodel import training
from etcmodel.models import piece_ids
from etcmodel.options import ProgramFlags
from etcmodel.preprocessing import program
from etcmodel.tasks.summarization import preprocess

PIECES = pathlib.Path(__file__).parents[1] / "fixtures" / "sentence_pieces" / "spiece.model"


def folder_of(folder, model_type="pegasus_x", **tokenizer_config):
    """A folder with what is read of it: a config, the pieces and perhaps a tokenizer's settings."""
    folder.mkdir()
    shutil.copy(PIECES, folder)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    if tokenizer_config:
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return str(folder)


@pytest.mark.parametrize(
    ("model_type", "tokenizer_config", "expected"),
    [
        ("pegasus_x", {}, 103),
        ("pegasus_x", {"offset": 7}, 7),
        ("bigbird_pegasus", {}, 0),
        ("bigbird_pegasus", {"offset": 103}, 103),
        ("longt5", {"extra_ids": 100}, 0),
        ("bert", {}, 0),
    ],
)
def test_the_folder_tells_the_offset(model_type, tokenizer_config, expected, tmp_path):
    folder = folder_of(tmp_path / "model", model_type, **tokenizer_config)
    assert piece_ids.offset_of(folder) == expected


def test_a_saved_processor_and_a_run_tell_it_too(tmp_path):
    etcmodel.Seq2SeqProcessor(str(PIECES), id_offset=5).save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text('{"model_type": "pegasus_x"}')
    assert piece_ids.offset_of(tmp_path / "saved") == 5
    (tmp_path / "run" / "best").mkdir(parents=True)
    described = {"task": {"piece_id_offset": 103}}
    (tmp_path / "run" / training.RUN_CONFIG_FILE).write_text(json.dumps(described))
    assert piece_ids.offset_of(tmp_path / "run" / "best") == 103


def test_an_offset_that_is_no_number_is_refused(tmp_path):
    folder = folder_of(tmp_path / "model", offset="103")
    with pytest.raises(ValueError, match="model: the offset of sentence pieces must be a whole"):
        piece_ids.offset_of(folder)


def options_of(*arguments):
    """The options of `preprocess` with these flags."""
    values = flags.FlagValues()
    program_flags = ProgramFlags({"preprocess": preprocess.PreprocessOptions}, values)
    program_flags.define()
    values(["preprocess", "--input_pattern=x.jsonl", "--output_prefix=x", *arguments])
    return program.read_options(preprocess.PreprocessOptions, program_flags, values)


def test_records_for_a_folder_have_the_ids_of_its_processor(tmp_path):
    folder = folder_of(tmp_path / "model")
    made = options_of(f"--init_checkpoint={folder}")
    tokenizer = program.make_job(made, *preprocess.load_parts()).make_converter.tokenizer()
    processor = etcmodel.Seq2SeqProcessor(str(PIECES), id_offset=103)
    assert tokenizer.encode("The river.", None)[0] == list(processor("The river.")["input_ids"][0])
    with pytest.raises(ValueError) as refused:
        options_of(f"--init_checkpoint={folder}", "--piece_id_offset=0")
    assert str(refused.value) == (
        f"--piece_id_offset=0: the model in '{folder}' has --piece_id_offset=103. Leave the flag "
        "out."
    )
    # Who gives the vocabulary says what becomes of text, too.
    given = (f"--spm_model_file={folder}/spiece.model", f"--init_checkpoint={folder}")
    assert options_of(*given).piece_id_offset == 103
    assert options_of(*given, "--piece_id_offset=0").piece_id_offset == 0


def test_records_with_other_ids_do_not_train_the_model(tmp_path):
    folder = folder_of(tmp_path / "model")
    piece_ids.check_records(folder, {"x.config.json": {"piece_id_offset": 103}})
    piece_ids.check_records(folder, {"x.config.json": {}})  # Of a task without the option.
    with pytest.raises(ValueError, match="x.config.json: the records .*=0, and .*=103: its ids"):
        piece_ids.check_records(folder, {"x.config.json": {"piece_id_offset": 0}})
