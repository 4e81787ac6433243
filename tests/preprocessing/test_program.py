"""From the shared options to a job, and what the records are said to be made with."""

import dataclasses
import hashlib
import json
import pathlib
import subprocess
import sys

import pytest

from etcmodel import preprocessing, training
from etcmodel.options import changed, option
from etcmodel.preprocessing import program
from etcmodel.text import vocabulary_files

SMALL = pathlib.Path(__file__).parents[1] / "reference" / "small"
SENTENCEPIECE_MODEL = SMALL / "tokenization" / "tiny_digit_comma.model"
VOCAB = "[PAD]\n[UNK]\na\nb\nA\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputConfig:
    long_seq_length: int
    global_seq_length: int
    release_compatible: bool
    stride: int


class ConverterFactory(preprocessing.ConverterFactory):
    """A record of every `stride` tokens."""

    task = "toy"
    format_version = 3

    def input_config(self, tokenizer):
        return InputConfig(**self.fields)

    def convert(self, raw, config, tokenizer):
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(raw["text"]))
        starts = range(0, len(ids), config.stride)
        return preprocessing.Converted(
            features=[{"ids": ids[start : start + config.stride]} for start in starts],
            lengths={"tokens": len(ids)},
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(program.PreprocessOptions):
    input_pattern: str = changed(program.PreprocessOptions, "input_pattern", help_text="Raw file.")
    stride: int = option(2, "Tokens.", role="features")


def read(path):
    with open(path, encoding="utf-8") as file:
        yield from ({"text": line} for line in file)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "vocab.txt").write_text(VOCAB)
    (tmp_path / "raw.txt").write_text("a b a\nA\n")
    return {
        "input_pattern": str(tmp_path / "raw.txt"),
        "output_prefix": str(tmp_path / "out" / "train"),
        "vocab_file": str(tmp_path / "vocab.txt"),
    }


def test_options_become_a_job(files):
    options = Options(**files, num_shards=3, strict=True, long_seq_length=7, stride=5)
    job = program.make_job(options, ConverterFactory, read, ["--runner=X"])
    assert (job.input_pattern, job.output_prefix) == (
        files["input_pattern"],
        files["output_prefix"],
    )
    assert (job.num_shards, job.strict, job.direct_num_workers) == (3, True, 0)
    assert job.statistics_file == f"{files['output_prefix']}.stats.json"
    assert job.beam_args == ("--runner=X",) and job.read is read
    assert job.settings == {
        "task": "toy",
        "format_version": 3,
        "long_seq_length": 7,
        "global_seq_length": 256,
        "release_compatible": False,
        "stride": 5,
        "tokenizer": "wordpiece",
        "do_lower_case": True,
        "vocab_size": 5,
        "vocab_sha256": hashlib.sha256(VOCAB.encode()).hexdigest(),
    }


def test_the_settings_name_the_tokenizer_that_is_used(files):
    options = Options(**files, spm_model_file=str(SENTENCEPIECE_MODEL))
    settings = program.make_job(options, ConverterFactory, read).settings
    assert (settings["tokenizer"], settings["do_lower_case"]) == ("sentencepiece", False)
    assert settings["vocab_sha256"] == hashlib.sha256(SENTENCEPIECE_MODEL.read_bytes()).hexdigest()


def test_splitting_at_punctuation_reaches_the_converter_and_the_settings(files):
    options = {**files, "spm_model_file": str(SENTENCEPIECE_MODEL)}
    plain = program.make_job(Options(**options), ConverterFactory, read)
    split = program.make_job(Options(**options, split_punctuation=True), ConverterFactory, read)
    assert split.make_converter()({"text": "a."}) == plain.make_converter()({"text": "a ."})
    assert split.make_converter()({"text": "a."}) != plain.make_converter()({"text": "a."})
    assert split.settings == {**plain.settings, "split_punctuation": True}


def test_splitting_word_pieces_at_punctuation_is_no_choice(files):
    with pytest.raises(ValueError, match="`split_punctuation` is for SentencePiece models"):
        program.make_job(Options(**files, split_punctuation=True), ConverterFactory, read)


def test_the_converter_makes_any_number_of_records(files):
    job = program.make_job(Options(**files), ConverterFactory, read)
    converted = [job.make_converter()(raw) for raw in job.read(job.input_pattern)]
    assert [one.features for one in converted] == [[{"ids": [2, 3]}, {"ids": [2]}], [{"ids": [2]}]]
    cased = program.make_job(Options(**files, do_lower_case=False), ConverterFactory, read)
    assert cased.make_converter()({"text": "A"}).features == [{"ids": [4]}]


def test_the_whole_job_writes_all_records(files):
    ((prefix, statistics),) = program.run(
        Options(**files, num_shards=1), lambda: (ConverterFactory, read)
    )
    assert prefix == files["output_prefix"]
    assert (statistics["examples_read"], statistics["examples_written"]) == (2, 3)
    assert statistics["mean_tokens"] == 2


@pytest.mark.parametrize("place", ["run", "run/best"])
def test_the_folder_of_a_training_is_told_from_one_with_a_vocabulary(place, tmp_path):
    best = tmp_path / "run" / "best"
    best.mkdir(parents=True)
    (tmp_path / "run" / training.RUN_CONFIG_FILE).write_text("{}")
    with pytest.raises(ValueError) as refused:
        vocabulary_files.of_folder(str(tmp_path / place), {})
    assert str(refused.value) == (
        f"'{tmp_path}/{place}' holds a training's checkpoints, and no vocabulary. After a "
        f"pre-training, `etcmodel save_pretrained pretraining --output_dir={tmp_path}/run` writes "
        "a folder with both. Give that."
    )
    (tmp_path / place / "vocab.txt").write_text(VOCAB)
    found = vocabulary_files.of_folder(str(tmp_path / place), {})
    assert found["vocab_file"] == f"{tmp_path}/{place}/vocab.txt"


def trained_with(folder, vocab_file, **options):
    """The folder of a training that notes this vocabulary, and its best checkpoint's."""
    (folder / "best").mkdir(parents=True)
    digest = vocabulary_files.sha256(str(vocab_file))
    run = {"task": {"vocab_sha256": [digest], **options}, "notes": {"vocab_file": str(vocab_file)}}
    (folder / training.RUN_CONFIG_FILE).write_text(json.dumps(run))
    return [str(folder), str(folder / "best")]


@pytest.mark.parametrize("lower", [True, False])
def test_records_for_going_on_with_a_training_have_its_vocabulary(lower, tmp_path):
    (tmp_path / "my.txt").write_text(VOCAB)
    for folder in trained_with(tmp_path / "run", tmp_path / "my.txt", do_lower_case=lower):
        expected = {"vocab_file": f"{tmp_path}/my.txt", "do_lower_case": lower}
        assert vocabulary_files.of_folder(folder, {}) == expected
        with pytest.raises(ValueError, match="Leave the flag out"):
            vocabulary_files.of_folder(folder, {"do_lower_case": not lower})


@pytest.mark.parametrize("change", ["another one now", "not there any more"])
def test_a_training_whose_vocabulary_is_not_the_same_gives_none(change, tmp_path):
    vocab_file = tmp_path / "my.txt"
    vocab_file.write_text(VOCAB)
    folder, _ = trained_with(tmp_path / "run", vocab_file)
    if change == "another one now":
        vocab_file.write_text(VOCAB + "c\n")
    else:
        vocab_file.unlink()
    told = f"{folder}: the vocabulary of the run, '{vocab_file}', is {change}. Put it back, or give"
    with pytest.raises(ValueError) as refused:
        vocabulary_files.of_folder(folder, {})
    assert str(refused.value).startswith(told)
    moved = {"vocab_file": f"{tmp_path}/moved.txt"}
    (tmp_path / "moved.txt").write_text(VOCAB)  # Then how text is tokenized is given, too.
    assert not vocabulary_files.of_folder(folder, moved)
    (tmp_path / "moved.txt").write_text(VOCAB + "d\n")
    with pytest.raises(ValueError, match="moved.txt: the run in .* with another vocabulary. Leave"):
        vocabulary_files.of_folder(folder, moved)


def test_a_training_that_does_not_note_the_case_has_that_of_its_vocabulary_or_of_a_flag(tmp_path):
    for name, pieces in (("lower", "a\nb\n"), ("cased", "A\nB\n")):
        vocab_file = tmp_path / f"{name}.txt"
        vocab_file.write_text("[PAD]\n[UNK]\n" + pieces)
        folder, _ = trained_with(tmp_path / name, vocab_file)
        found = vocabulary_files.of_folder(folder, {})
        assert found == {"vocab_file": str(vocab_file), "do_lower_case": name == "lower"}
        for given in (True, False):  # Nobody knows better.
            found = vocabulary_files.of_folder(folder, {"do_lower_case": given})
            assert found["do_lower_case"] is given


def test_sentence_pieces_of_a_training_may_have_any_name(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "pieces.spm").write_bytes(b"as SentencePiece writes them")
    run = {"task": {}, "notes": {"spm_model_file": str(tmp_path / "pieces.spm")}}
    (tmp_path / "run" / training.RUN_CONFIG_FILE).write_text(json.dumps(run))
    found = vocabulary_files.of_folder(str(tmp_path / "run"), {})
    assert found == {"spm_model_file": f"{tmp_path}/pieces.spm", "split_punctuation": False}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoSets(Options):
    """Options that make a second set, of other windows, beside the first."""

    def sets(self):
        other = dataclasses.replace(
            self, output_prefix=f"{self.output_prefix}-whole", stride=9, num_shards=1
        )
        return [self, other]


def test_a_task_may_make_several_sets_and_run_their_jobs_itself(files):
    jobs = []

    def run_job(job):
        jobs.append(job)
        return {"examples_written": len(jobs)}

    made = program.run(TwoSets(**files), lambda: (ConverterFactory, read), ["--runner=X"], run_job)
    assert list(made) == [
        (files["output_prefix"], {"examples_written": 1}),
        (f"{files['output_prefix']}-whole", {"examples_written": 2}),
    ]
    assert [job.settings["stride"] for job in jobs] == [2, 9]
    assert [job.num_shards for job in jobs] == [256, 1]
    assert {job.beam_args for job in jobs} == {("--runner=X",)}


def test_files_are_looked_for_before_any_work(files):
    options = TwoSets(**{**files, "vocab_file": "gone.txt"})
    with pytest.raises(ValueError, match="--vocab_file: no such file: 'gone.txt'"):
        next(program.run(options, lambda: pytest.fail("loaded the task's parts")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_pattern": ""}, "--input_pattern must be given."),
        ({"output_prefix": ""}, "--output_prefix must be given."),
        ({"vocab_file": ""}, "Either --vocab_file or --spm_model_file must be given."),
    ],
)
def test_missing_options_are_named_by_their_flag(files, changes, message):
    with pytest.raises(ValueError, match=message):
        Options(**{**files, **changes})


def test_wrong_flags_are_told_without_waiting_for_tensorflow():
    code = "import sys, etcmodel.preprocessing.program; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
