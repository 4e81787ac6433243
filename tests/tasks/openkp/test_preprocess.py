"""The preprocessing and the cleaning program, run as users run them."""

import gzip
import json
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

from etcmodel.tasks.openkp import preprocess
from tests.tasks.openkp.pages import page, write_lines

VOCAB = ["[PAD]", "[g]", "[UNK]", "a", "red", "rose", "in", "the", "garden", "moon"]

GOOD = [page("a red rose", "in the garden", url=f"http://good/{i}") for i in range(5)]
ODD_SPACES = page(
    "a red\u00a0rose ", "in\tthe", key_phrases=[["red\u00a0rose"]], url="http://good/odd-spaces"
)
GOOD.append(ODD_SPACES)
DROPPED = page("a red rose", key_phrases=[["sky"]], url="http://dropped")
BAD = [
    "{nonsense\n",
    page("a red rose", url="http://bad/vdom", VDOM="[{]"),
    page("", url="http://bad/empty"),
    page("a red rose", url="http://bad/unlabeled", KeyPhrases=None),
]


def run(module, *arguments, **flags):
    command = [sys.executable, "-m", f"etcmodel.tasks.openkp.{module}", *arguments]
    command += [f"--{name}={value}" for name, value in flags.items()]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def flags(tmp_path):
    """Flags for a file with good pages, bad ones, and one without its key phrase."""
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(VOCAB))
    source = tmp_path / "pages.jsonl.gz"
    plain = write_lines(tmp_path / "plain", [*GOOD[:2], *BAD, *GOOD[2:], DROPPED])
    utf8 = b'{"url": "\xff"}\n'
    source.write_bytes(gzip.compress(pathlib.Path(plain).read_bytes() + utf8))
    return {
        "input_patterns": source,
        "output_dir": tmp_path / "records",
        "bert_vocab_path": vocab,
        "long_max_length": 8,
        "global_max_length": 4,
        "output_num_shards": 2,
    }


def records(folder):
    files = sorted(map(str, pathlib.Path(folder).glob("pages.tfrecord-*-of-00002")))
    assert len(files) == 2
    data = tf.data.TFRecordDataset(files)
    return [tf.train.Example.FromString(record.numpy()).features.feature for record in data]


def url_of(record):
    return "".join(chr(i) for i in record["url_code_points"].int64_list.value if i >= 0)


@pytest.mark.slow
def test_bad_pages_are_counted_and_named_and_the_others_written(flags):
    done = run("preprocess", is_training="true", **flags)
    assert done.returncode == 0, done.stderr[-2000:]
    made = records(flags["output_dir"])
    assert {url_of(record) for record in made} == {raw["url"] for raw in GOOD}
    assert list(made[0]["long_token_ids"].int64_list.value) == [3, 4, 5, 6, 7, 8, 0, 0]
    assert list(made[0]["label_start_idx"].int64_list.value) == [1, -1, -1]
    assert list(made[0]["global_heights"].float_list.value) == [0.0] * 4

    (odd,) = [r for r in made if url_of(r) == ODD_SPACES["url"]]
    assert list(odd["long_token_ids"].int64_list.value) == [3, 4, 5, 6, 7, 0, 0, 0]
    assert list(odd["long_word_idx"].int64_list.value) == [0, 1, 1, 3, 3, 0, 0, 0]
    assert list(odd["label_start_idx"].int64_list.value) == [1, -1, -1]

    statistics = json.loads((flags["output_dir"] / "pages.tfrecord.stats.json").read_text())
    assert statistics["examples_written"] == 6
    assert statistics["examples_bad"] == 5
    assert statistics["dropped_no_key_phrase_in_input"] == 1
    named = " ".join(statistics["bad_examples"])
    for part in (
        "line 3: malformed JSON",
        "line 4: page 'http://bad/vdom': field `VDOM` is malformed JSON",
        "line 5: page 'http://bad/empty': the page is empty",
        "http://bad/unlabeled' has no key phrases to train on",
        "line 12: invalid UTF-8",
    ):
        assert part in named, (part, named)
    settings = json.loads((flags["output_dir"] / "pages.tfrecord.config.json").read_text())
    assert settings["task"] == "openkp" and settings["long_seq_length"] == 8


def test_output_names_follow_the_input_or_the_prefix():
    def options(**fields):
        return preprocess.PreprocessOptions(vocab_file="v", **fields)

    named = options(input_pattern="in/OpenKPTrain.jsonl.gz", output_dir="out")
    assert named.output_prefix == "out/OpenKPTrain.tfrecord"
    assert options(input_pattern="a.b.JSONL.ZST", output_dir="out").output_prefix == (
        "out/a.b.tfrecord"
    )
    given = options(input_pattern="in/a.jsonl", output_dir="out", output_prefix="elsewhere/b")
    assert given.output_prefix == "elsewhere/b"
    with pytest.raises(ValueError, match="--output_prefix must be given"):
        options(input_pattern="in/a.jsonl")


def test_each_file_of_several_patterns_has_its_own_names(tmp_path):
    names = ["a1.jsonl", "a2.jsonl.gz", "b.jsonl"]
    for name in names:
        (tmp_path / name).write_text("")

    def prefixes(*patterns, **fields):
        given = preprocess.PreprocessOptions(
            input_pattern=",".join(str(tmp_path / pattern) for pattern in patterns),
            vocab_file="v",
            **{"output_dir": "out", **fields},
        )
        return [(s.input_pattern, s.output_prefix) for s in given.sets()]

    assert prefixes("a*", "b.jsonl") == [
        (str(tmp_path / name), f"out/{name.split('.')[0]}.tfrecord") for name in names
    ]
    both = [str(tmp_path / "a*"), str(tmp_path / "b.jsonl")]
    assert prefixes("a*", "b.jsonl", output_prefix="x/all") == [(both, "x/all")]
    with pytest.raises(ValueError, match=r"No input file matches '.*/c\*'"):
        prefixes("a*", "c*")
    assert prefixes("b.jsonl", "b*") == [(str(tmp_path / "b.jsonl"), "out/b.tfrecord")]
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.jsonl").write_text("")
    with pytest.raises(ValueError, match="b.jsonl and .*b.jsonl would make files of the same nam"):
        prefixes("b.jsonl", "more/*")


@pytest.mark.parametrize("content", ["[1]", "5", "{", '"x"'])
def test_counts_that_are_not_ours_are_told_anew(tmp_path, content):
    path = tmp_path / "example_gen_stats.txt"
    path.write_text(content)
    assert preprocess._known_counts(str(path)) == {}
    path.write_text('{"a.jsonl": {}}')
    assert preprocess._known_counts(str(path)) == {"a.jsonl": {}}


def test_the_cleaning_program(tmp_path):
    source = write_lines(tmp_path / "raw.jsonl", [*GOOD, GOOD[0], BAD[0]])
    target = tmp_path / "clean.jsonl"
    done = run("input_validate_and_dedup", input_file=source, output_file=target)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("lines: 8, written: 6, repeated: 1, bad: 1")
    assert "skipped line 8: malformed JSON" in done.stderr
    assert len(target.read_text().splitlines()) == 6

    failed = run(
        "input_validate_and_dedup", "--strict", input_file=source, output_file=tmp_path / "other"
    )
    assert failed.returncode == 1 and "error: " in failed.stderr
    assert "Traceback" not in failed.stderr and not (tmp_path / "other").exists()
