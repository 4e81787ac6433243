"""The preprocessing program, run as users run it, and the pipeline below it."""

import gzip
import json
import os
import pathlib
import subprocess

import pytest
import tensorflow as tf

from etcmodel import preprocessing
from etcmodel.preprocessing import raw_files
from etcmodel.tasks.hotpotqa import examples, features
from etcmodel.tasks.hotpotqa.config import HotpotQAInputConfig
from etcmodel.text import tokenization
from tests.warm import python as warm

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORDS = "where is the rose ? town red blue in a . yes no"
HEAD = ["[PAD]", *(f"[unused{i}]" for i in range(5)), "[UNK]", "[CLS]"]
NUM_GOOD = 7


def raw_example(name, **fields):
    return {
        "_id": name,
        "question": "Where is the rose?",
        "answer": "town",
        "supporting_facts": [["Rose", 0]],
        "context": [["Blue", ["Blue is blue."]], ["Rose", ["The rose is in a town.", " Red."]]],
        "type": "bridge",
        "level": "easy",
        **fields,
    }


BAD_EXAMPLE = raw_example("bad", context="none")
DROPPED_EXAMPLE = raw_example("dropped", answer="sky")


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(HEAD + WORDS.split()), encoding="utf-8")
    return str(path)


@pytest.fixture
def input_file(tmp_path):
    """Good examples, a malformed one and one without its answer, pretty-printed and compressed."""
    raws = [raw_example(f"good{index}") for index in range(NUM_GOOD)]
    path = tmp_path / "input.json.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump([*raws[:3], BAD_EXAMPLE, *raws[3:], DROPPED_EXAMPLE], file, indent=2)
    return str(path)


def run_program(*arguments):
    # No proxy answers there: a download would fail.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    return subprocess.run(
        [warm.python(), "-m", "etcmodel.tasks.hotpotqa.preprocess", *arguments],
        cwd=ROOT,
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )


def last_line(text):
    return text.strip().splitlines()[-1]


def read_records(files):
    records = []
    for record in tf.data.TFRecordDataset(sorted(map(str, files))):
        example = tf.train.Example.FromString(record.numpy())
        values = {}
        for name, feature in example.features.feature.items():
            values[name] = list(getattr(feature, feature.WhichOneof("kind")).value)
        records.append(values)
    return records


def make_job(tmp_path, input_pattern, vocab_file, **fields):
    factory = features.ConverterFactory(
        vocab_file=vocab_file,
        spm_model_file="",
        do_lower_case=True,
        fields={"long_seq_length": 32, "global_seq_length": 16},
    )
    defaults = {
        "input_pattern": str(input_pattern),
        "output_prefix": str(tmp_path / "out" / "train"),
        "num_shards": 2,
        "read": raw_files.read_json_values,
        "make_converter": factory,
        "settings": factory.settings(),
        "statistics_file": str(tmp_path / "out" / "stats.json"),
        "direct_num_workers": 1,
    }
    return preprocessing.Job(**{**defaults, **fields})


def names_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.slow
def test_the_program_writes_shards_settings_and_statistics(tmp_path, input_file, vocab_file):
    prefix = tmp_path / "out" / "train"
    done = run_program(
        f"--input_json_filename={input_file}",
        f"--output_tf_examples_file_path_prefix={prefix}",
        f"--vocab_file={vocab_file}",
        "--num_shards=3",
        "--long_seq_length=32",
        "--global_seq_length=16",
        "--nodebug",
    )
    assert done.returncode == 0, done.stderr
    shards = [f"train-{index:05d}-of-00003.tfrecord" for index in range(3)]
    assert names_in(prefix.parent) == [*shards, "train.config.json", "train.stats.json"]

    tokenizer = tokenization.FullTokenizer(vocab_file)
    fields = {"long_seq_length": 32, "global_seq_length": 16}
    config = HotpotQAInputConfig.for_tokenizer(tokenizer, **fields)
    records = read_records(prefix.parent / shard for shard in shards)
    expected = features.make_features(
        examples.parse_example(raw_example("good0")), config, tokenizer
    ).features
    expected = {name: value for name, value in expected.items() if name != "unique_ids"}
    ids = []
    for record in records:
        ids += [name.decode() for name in record.pop("unique_ids")]
        record["type"], record["level"] = ["bridge"], ["easy"]
        assert record == expected
    assert sorted(ids) == [f"good{index}" for index in range(NUM_GOOD)]

    statistics = json.loads((prefix.parent / "train.stats.json").read_text())
    assert statistics["examples_read"] == NUM_GOOD + 2
    assert statistics["examples_written"] == NUM_GOOD
    assert statistics["examples_bad"] == 1
    assert statistics["dropped_no_answer_in_input"] == 1
    assert statistics["examples_truncated"] == 0
    assert statistics["mean_long_tokens"] == 21
    assert "element 3: example 'bad': field `context`" in statistics["bad_examples"][0]
    assert "skipped" in done.stderr and "example 'bad'" in done.stderr

    settings = json.loads((prefix.parent / "train.config.json").read_text())
    assert settings["long_seq_length"] == 32
    assert settings["global_seq_length"] == 16
    assert settings["cls_token_id"] == HEAD.index("[CLS]")
    assert settings["tokenizer"] == "wordpiece"
    assert settings["release_compatible"] is False
    assert len(settings["vocab_sha256"]) == 64


@pytest.mark.slow
def test_strict_fails_with_one_line_and_leaves_nothing(tmp_path, input_file, vocab_file):
    prefix = tmp_path / "out" / "train"
    done = run_program(
        f"--input_json_filename={input_file}",
        f"--output_tf_examples_file_path_prefix={prefix}",
        f"--vocab_file={vocab_file}",
        "--strict",
    )
    assert done.returncode == 1
    assert last_line(done.stderr).startswith(f"error: {input_file}: element 3: example 'bad': fiel")
    assert "Traceback" not in done.stderr
    assert names_in(prefix.parent) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vocab_file=v.txt"], "--input_pattern must be given."),
        (
            ["--input_json_filename=none*.json", "--output_tf_examples_file_path_prefix=x"],
            "Either --vocab_file or --spm_model_file must be given. The folder of a model, as "
            "--init_checkpoint, gives one, too.",
        ),
        (["--num_shards=0"], "flag --num_shards=0: 0 is not an integer in the range [1, 99999]"),
    ],
)
def test_impossible_flags_are_named_in_one_line(arguments, message):
    done = run_program(*arguments)
    assert (done.returncode, last_line(done.stderr)) == (1, f"error: {message}")


def test_help_explains_each_flag_with_its_default():
    text = " ".join(run_program("--help").stdout.split())
    for flag, default in [
        ("--input_pattern", "default: ''"),
        ("--num_shards", "default: '256'"),
        (
            "--long_seq_length",
            "Length of the long input in tokens, including padding. (default: '2048'",
        ),
        (
            "--global_seq_length",
            "Length of the global input in tokens, including padding. (default: '256'",
        ),
        ("--[no]release_compatible", "default: 'false'"),
        ("--[no]debug", "default: 'true'"),
    ]:
        assert default in text[text.index(f"{flag}: ") :][:300], flag


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "no example is left to write"),
        ("", "no example is left to write: the input holds none"),
        ('[{"_id": }]', "malformed JSON at line 1, column 10"),
        (json.dumps([BAD_EXAMPLE]), "1 are malformed, the first: .* example 'bad'"),
        (json.dumps([DROPPED_EXAMPLE]), "examples read: 1, dropped no answer in input: 1"),
    ],
)
def test_input_without_examples_is_an_error(tmp_path, vocab_file, content, message):
    path = tmp_path / "input.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        preprocessing.run(make_job(tmp_path, path, vocab_file))
    assert names_in(tmp_path / "out") == []
