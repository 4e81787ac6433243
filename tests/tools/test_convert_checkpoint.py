"""The program that converts checkpoints."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

import etcmodel
from etcmodel.checkpoints import sources
from etcmodel.models import modeling, presets
from etcmodel.models.longformer import LongformerConfig
from etcmodel.text import vocabulary_files
from etcmodel.tools import convert_checkpoint
from etcmodel.training import run_directory
from tests.checkpoints import berts

CONFIG = modeling.EtcConfig(**berts.SIZES, vocab_size=berts.VOCAB, relative_pos_max_distance=0)
TOKENS = "etc_document_bert/token_emb_lookup/embedding_table"
BERT_TOKENS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def weights():
    return berts.hugging_face_weights()


@pytest.fixture
def arguments(tmp_path, weights):
    """Flags that lift a small BERT."""
    config = tmp_path / "config_of_etc.json"
    config.write_text(CONFIG.to_json_string(), encoding="utf-8")
    return {
        "input": berts.write_safetensors(tmp_path, weights),
        "model_config_file": config,
        "output_dir": tmp_path / "new",
    }


def run_program(*arguments):
    """Runs the program as a process of its own."""
    command = [sys.executable, "-m", "etcmodel.tools.convert_checkpoint", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def options_of(arguments):
    return convert_checkpoint.ConvertOptions(
        **{name: str(value) if name != "overwrite" else value for name, value in arguments.items()}
    )


def run_here(**arguments):
    """Runs the program in this process."""
    convert_checkpoint.run(options_of(arguments))


def tokens_at(path):
    return sources.open_source(path).read(TOKENS)


def test_bert_is_lifted_and_what_went_where_is_told(arguments, weights, capsys):
    run_here(**arguments)
    path = str(arguments["output_dir"] / "model.ckpt")
    np.testing.assert_array_equal(tokens_at(path), weights[BERT_TOKENS])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"{BERT_TOKENS} -> {TOKENS}" in lines
    assert "bert.pooler.dense.bias -> (not used)" in lines
    assert lines[-1].endswith(f"variables: {arguments['input']} -> {path}")


@pytest.fixture
def of_run(arguments, tmp_path):
    """(Flags that convert a training's checkpoint, the vocabulary of cased text that it names.)"""
    run_here(**arguments)
    vocab_file = tmp_path / "of_run.txt"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"W{i}" for i in range(4, berts.VOCAB))]
    vocab_file.write_text("\n".join(words), encoding="utf-8")
    content = {"task": {"do_lower_case": False}}
    notes = {"vocab_file": str(vocab_file)}
    run_directory.claim_directory(str(arguments["output_dir"]), content, notes=notes)
    again = tmp_path / "again"
    return {"input": arguments["output_dir"] / "model.ckpt", "output_dir": again}, vocab_file


def test_the_vocabulary_of_a_run_goes_along(of_run, capsys):
    given, vocab_file = of_run
    run_here(**given)
    again = given["output_dir"]
    assert (again / "vocab.txt").read_text() == vocab_file.read_text()
    assert f"The vocabulary is that of the run in {given['input'].parent}: {vocab_file}" in (
        capsys.readouterr().out
    )
    found = vocabulary_files.of_folder(str(again), {})
    assert found == {"vocab_file": str(again / "vocab.txt"), "do_lower_case": False}
    run_here(**given, output_format="safetensors")  # The settings are there, and the same.


@pytest.mark.parametrize("output_format", ["released", "safetensors", "tf2"])
@pytest.mark.parametrize("is_etc", [True, False])
def test_the_config_of_a_run_goes_along_too(output_format, is_etc, arguments, tmp_path, capsys):
    run_here(**arguments)
    folder = arguments["output_dir"]
    (folder / "etc_config.json").unlink()
    other = LongformerConfig(vocab_size=7, num_hidden_layers=1, attention_window=[2])
    config = (CONFIG if is_etc else other).to_dict()
    run_directory.claim_directory(str(folder), {"task": {"etc_config": config}})
    given = {"input": folder, "output_dir": tmp_path / "again", "output_format": output_format}
    with pytest.raises(ValueError, match="of a training, whose model `etcmodel export` wr") as told:
        etcmodel.from_pretrained(folder)
    assert (f"`etcmodel convert --input={folder} --output_dir=" in str(told.value)) == is_etc
    if not is_etc:
        if output_format != "tf2":  # It needs the config.
            run_here(**given)
            assert "No config is written, which `from_pretrained` needs" in capsys.readouterr().err
        assert not list((tmp_path / "again").glob("*config.json"))
        return
    run_here(**given)
    assert "No config" not in capsys.readouterr().err
    found = etcmodel.from_pretrained(tmp_path / "again")
    assert found.config == CONFIG
    np.testing.assert_array_equal(
        found.get_token_embedding_table(), tokens_at(str(folder / "model.ckpt"))
    )


def test_a_folder_within_that_of_a_run_has_its_own_config(arguments, tmp_path):
    run_here(**arguments)
    other = LongformerConfig(vocab_size=7, num_hidden_layers=1, attention_window=[2]).to_dict()
    run_directory.claim_directory(str(tmp_path), {"task": {"etc_config": other}})
    run_here(input=arguments["output_dir"], output_dir=tmp_path / "again")
    assert etcmodel.from_pretrained(tmp_path / "again").config == CONFIG


def test_its_added_tokens_go_along_too(of_run):
    given, vocab_file = of_run
    added = {"added_tokens_decoder": {str(berts.VOCAB): {"content": "<tab>", "special": False}}}
    beside = vocab_file.with_name("tokenizer_config.json")
    beside.write_text(json.dumps(added), encoding="utf-8")
    run_here(**given)
    kept = json.loads((given["output_dir"] / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert kept == {**added, "do_lower_case": False, "split_punctuation": False}


def test_it_is_found_from_the_folder_itself(of_run, monkeypatch):
    given, vocab_file = of_run
    monkeypatch.chdir(given["input"].parent)
    run_here(**{**given, "input": "model.ckpt"})
    assert (given["output_dir"] / "vocab.txt").read_text() == vocab_file.read_text()


def test_a_run_whose_description_is_damaged_is_converted_without(of_run, capsys):
    given, _ = of_run
    (given["input"].parent / "run_config.json").write_text("{", encoding="utf-8")
    run_here(**given)
    assert not (given["output_dir"] / "vocab.txt").exists()
    assert "No vocabulary is written: " in capsys.readouterr().err


def test_a_given_vocabulary_comes_before_that_of_a_run(of_run, tmp_path):
    (tmp_path / "mine.txt").write_text("[PAD]\n[UNK]\n", encoding="utf-8")
    given, _ = of_run
    run_here(**given, vocab_file=tmp_path / "mine.txt")
    assert (given["output_dir"] / "vocab.txt").read_text() == "[PAD]\n[UNK]\n"


def test_a_run_whose_vocabulary_is_gone_is_converted_without(of_run, capsys):
    given, vocab_file = of_run
    vocab_file.unlink()
    run_here(**given)
    assert not (given["output_dir"] / "vocab.txt").exists()
    assert "No vocabulary is written: " in (told := capsys.readouterr().err)
    assert "is not there any more. Put it back" in told


def test_help_tells_every_flag():
    done = run_program("--help")
    for field in dataclasses.fields(convert_checkpoint.ConvertOptions):
        assert f"{field.name}:" in done.stdout
    assert "--etc_config_file: Alias of --model_config_file." in done.stdout


@pytest.mark.slow
def test_a_refusal_is_a_line_and_not_a_traceback(arguments):
    config, output_dir = arguments["model_config_file"], arguments["output_dir"]
    done = run_program(
        "--input=absent.ckpt", f"--etc_config_file={config}", f"--output_dir={output_dir}"
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: No readable checkpoint at 'absent")


def test_a_directory_that_cannot_be_is_an_error_that_names_it(arguments):
    inside_a_file = arguments["model_config_file"] / "new"
    with pytest.raises((ValueError, OSError), match="config_of_etc.json"):
        convert_checkpoint.run(options_of({**arguments, "output_dir": inside_a_file}))


def test_only_overwrite_replaces(arguments):
    run_here(**arguments)
    with pytest.raises(ValueError, match=r"exists already. Allow to overwrite it \(--overwrite\)"):
        run_here(**arguments)
    run_here(**arguments, overwrite=True)


@pytest.mark.parametrize(
    "output_format, name",
    [("released", "model.ckpt"), ("tf2", "ckpt"), ("safetensors", "model.safetensors")],
)
def test_every_format_goes_to_its_file(arguments, weights, output_format, name):
    run_here(**arguments, output_format=output_format)
    path = str(arguments["output_dir"] / name)
    np.testing.assert_array_equal(tokens_at(path), weights[BERT_TOKENS])


def test_rows_follow_the_vocabularies(tmp_path, arguments, weights):
    pieces = [f"word{i}" for i in range(berts.VOCAB)]
    for name, order in (("source", pieces), ("target", pieces[::-1])):
        (tmp_path / f"{name}.txt").write_text("\n".join(order) + "\n", encoding="utf-8")
        arguments[f"{name}_vocab"] = tmp_path / f"{name}.txt"
    run_here(**arguments)
    path = str(arguments["output_dir"] / "model.ckpt")
    np.testing.assert_array_equal(tokens_at(path), weights[BERT_TOKENS][::-1])
    written = (arguments["output_dir"] / "vocab.txt").read_text(encoding="utf-8")
    assert written.splitlines() == pieces[::-1]


@pytest.mark.parametrize(
    "more, message",
    [
        ({"preset": "etc_base"}, "Give --preset or --model_config_file, not both"),
        ({"source_vocab": "vocab.txt"}, "--source_vocab and --target_vocab belong together"),
    ],
)
def test_flags_that_cannot_be_are_refused(arguments, more, message):
    with pytest.raises(ValueError, match=message):
        run_here(**{**arguments, **more})


def test_a_preset_is_a_config_by_name(arguments, weights, monkeypatch):
    monkeypatch.setitem(presets.PRESETS, "etc_base", CONFIG)
    del arguments["model_config_file"]
    run_here(**arguments, preset="etc_base")
    written = modeling.EtcConfig.from_json_file(arguments["output_dir"] / "etc_config.json")
    assert written == CONFIG
