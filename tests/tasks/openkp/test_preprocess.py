"""The names of the records of several files, and the cleaning program, run as users run it."""

import subprocess

import pytest

from etcmodel.tasks.openkp import preprocess
from tests.tasks.openkp.pages import page, write_lines
from tests.warm import python as warm

GOOD = [page("a red rose", "in the garden", url=f"http://good/{i}") for i in range(5)]
ODD_SPACES = page(
    "a red\u00a0rose ", "in\tthe", key_phrases=[["red\u00a0rose"]], url="http://good/odd-spaces"
)
GOOD.append(ODD_SPACES)


def run(module, *arguments, **flags):
    command = [warm.python(), "-m", f"etcmodel.tasks.openkp.{module}", *arguments]
    command += [f"--{name}={value}" for name, value in flags.items()]
    return subprocess.run(command, capture_output=True, text=True)


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
    source = write_lines(tmp_path / "raw.jsonl", [*GOOD, GOOD[0], "{nonsense\n"])
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
