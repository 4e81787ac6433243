"""Raw examples as records of all features, and the flags of the program."""

import gzip
import json
import os
import pathlib
import subprocess

import pytest
import tensorflow as tf

from etcmodel.preprocessing import program
from etcmodel.tasks.hotpotqa import examples, features, preprocess
from etcmodel.tasks.hotpotqa.config import HotpotQAInputConfig
from etcmodel.text import tokenization
from tests import vocabularies
from tests.tasks.hotpotqa.raw_examples import raw_example
from tests.warm import python as warm

ROOT = pathlib.Path(__file__).resolve().parents[3]
RAW = raw_example()
WORDS = [RAW["question"], *(word for title, texts in RAW["context"] for word in (title, *texts))]
PIECES = ["[PAD]", *(f"[unused{i}]" for i in range(5)), "[UNK]", "[CLS]"]
PIECES += [*dict.fromkeys(" ".join(WORDS).split())]
LENGTHS = {"long_seq_length": 32, "global_seq_length": 16}


def values_of(record):
    """Its features: dict of lists."""
    features = tf.train.Example.FromString(record.numpy()).features.feature
    return {name: list(getattr(x, x.WhichOneof("kind")).value) for name, x in features.items()}


def test_records_have_the_features_and_settings_tell_of_what(tmp_path):
    """Raw examples are pretty-printed and packed, one malformed, and one without its answer."""
    raws = [raw_example(_id=f"good{index}") for index in range(7)]
    bad, dropped = raw_example(_id="bad", context="none"), raw_example(answer="sky")
    path, prefix = tmp_path / "input.json.gz", tmp_path / "out" / "train"
    made = json.dumps([*raws[:3], bad, *raws[3:], dropped], indent=2)
    path.write_bytes(gzip.compress(made.encode()))
    vocab_file = vocabularies.write(tmp_path, PIECES)
    options = preprocess.PreprocessOptions(
        input_pattern=str(path),
        output_prefix=str(prefix),
        vocab_file=vocab_file,
        num_shards=3,
        debug=False,
        **LENGTHS,
    )
    ((_, statistics),) = program.run(options, preprocess.load_parts)
    shards = [f"train-{index:05d}-of-00003.tfrecord" for index in range(3)]
    names = sorted(path.name for path in prefix.parent.iterdir())
    assert names == [*shards, "train.config.json", "train.stats.json"]

    tokenizer = tokenization.FullTokenizer(vocab_file)
    config = HotpotQAInputConfig.for_tokenizer(tokenizer, **LENGTHS)
    wanted = features.make_features(examples.parse_example(RAW), config, tokenizer).features
    records = tf.data.TFRecordDataset([str(prefix.parent / shard) for shard in shards])
    found = [values_of(record) for record in records]
    ids = [name.decode() for record in found for name in record.pop("unique_ids")]
    assert sorted(ids) == [raw["_id"] for raw in raws]
    del wanted["unique_ids"]
    wanted |= {"type": [b"bridge"], "level": [b"easy"]}
    assert found == [wanted] * 7

    expected = {"examples_read": 9, "examples_written": 7, "examples_bad": 1}
    expected |= {"dropped_no_answer_in_input": 1, "examples_truncated": 0, "mean_long_tokens": 25}
    assert statistics.items() >= expected.items()
    assert "element 3: example 'bad': field `context`" in statistics["bad_examples"][0]
    settings = json.loads((prefix.parent / "train.config.json").read_text())
    expected = {**LENGTHS, "cls_token_id": PIECES.index("[CLS]"), "tokenizer": "wordpiece"}
    assert settings.items() >= {**expected, "release_compatible": False}.items()
    assert len(settings["vocab_sha256"]) == 64


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
