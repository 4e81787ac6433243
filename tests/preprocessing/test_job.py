"""Jobs: streamed on this machine or done by Beam, with the same files, and nothing half-written."""

import contextlib
import dataclasses
import glob
import itertools
import json
import os
import pathlib

import pytest

from etcmodel import preprocessing
from etcmodel.preprocessing import local, raw_files
from tests.preprocessing.jobs import (
    BEAM,
    contents,
    files_of_at_most,
    manifest,
    num_records,
    shards,
    written,
)

LINES = (["a b", "bad", "c", "none", "d e f"], ["g", *(f"w{i}" for i in range(30)), "bad", "worse"])


@pytest.mark.slow
def test_several_processes_and_beam_write_the_same_as_one_process(make_job, tmp_path):
    one = make_job(*LINES)
    statistics = preprocessing.run(one)
    assert statistics["bad_examples"] == [
        f"{tmp_path / '0.txt'}: element 1: this is bad",
        f"{tmp_path / '1.txt'}: element 31: this is bad",
        f"{tmp_path / '1.txt'}: element 32: this is worse",
    ]
    named = ("examples_read", "examples_written", "examples_bad", "dropped", "mean_words")
    assert [statistics[name] for name in named] == [38, 37, 3, 1, round(37 / 34, 2)]
    assert list(statistics) == [*named, "seconds", "bad_examples"]
    for name, changes in (("two", {"direct_num_workers": 2}), ("beam", {"beam_args": BEAM})):
        prefix = str(tmp_path / "out" / name)
        other = dataclasses.replace(one, output_prefix=prefix, **changes)
        assert preprocessing.run(other) | {"seconds": 0} == statistics | {"seconds": 0}
        assert shards(other) == shards(one) and all(shards(one))
        assert manifest(other) == manifest(one) == num_records(one)
        kept, left_out = ((tmp_path / f"{name}.lines").read_text() for name in one.line_files)
        assert kept.splitlines() == ["a b", "c", "d e f", "g", *(f"w{i}" for i in range(30))]
        assert left_out == "none\né worse\n"
        pathlib.Path(one.line_files["kept"]).unlink()


def test_settings_and_statistics_lie_beside_the_shards(make_job, tmp_path):
    statistics = preprocessing.run(make_job(["a"], num_shards=3))
    names = [f"train-0000{shard}-of-00003.tfrecord" for shard in range(3)]
    assert written(tmp_path) == ["stats.json", *names, "train.config.json"]
    assert json.loads((tmp_path / "out" / "stats.json").read_text()) == statistics
    settings = json.loads((tmp_path / "out" / "train.config.json").read_text())
    sizes = [(tmp_path / "out" / name).stat().st_size for name in names]
    assert settings == {"task": "toy", "records_per_shard": [1, 0, 0], "bytes_per_shard": sizes}


def test_a_new_run_replaces_all_files_of_the_old_one(make_job, tmp_path):
    preprocessing.run(make_job(["a"], num_shards=5))
    preprocessing.run(make_job(["a"], num_shards=2))
    records = [name for name in written(tmp_path) if name.endswith(".tfrecord")]
    assert records == ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"]


@pytest.mark.parametrize("beam_args", [(), BEAM])
def test_what_cannot_be_read_or_written_is_skipped_with_its_place(make_job, tmp_path, beam_args):
    deep, digits, half = "[" * 1000 + "]" * 1000, "9" * 5000, '"\\ud800"'
    job = make_job([f'["a b", {deep}, {digits}, {half}, "c"]'], beam_args=beam_args)
    job = dataclasses.replace(job, read=raw_files.read_json_values)
    statistics = preprocessing.run(job)
    assert statistics["examples_written"] == 3
    first, second, third = statistics["bad_examples"]
    assert first == f"{tmp_path / '0.txt'}: element 1: nested deeper than 100 levels"
    assert second == f"{tmp_path / '0.txt'}: element 2: an integer of too many digits"
    assert third.startswith(
        f"{tmp_path / '0.txt'}: element 3: feature 'word' has half of a surrogate"
    )


def test_wildcards_leave_hidden_files_out_and_tell_so(tmp_path, caplog):
    for name in ("a.txt", "._a.txt", "b/a.txt", ".ipynb_checkpoints/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text", encoding="utf-8")
    assert preprocessing.input_files(f"{tmp_path}/*.txt") == [f"{tmp_path}/a.txt"]
    assert preprocessing.input_files(f"{tmp_path}/*/*.txt") == [f"{tmp_path}/b/a.txt"]
    assert [message.endswith(": 1 hidden files left out") for message in caplog.messages] == [
        True
    ] * 2
    for named in (f"{tmp_path}/._a.txt", f"{tmp_path}/._*"):
        assert preprocessing.input_files(named) == [f"{tmp_path}/._a.txt"]


def test_wildcards_without_a_folder_are_of_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", ".b.txt"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    for pattern, found in (("*.txt", "./a.txt"), ("./*.txt", "./a.txt"), (".*.txt", "./.b.txt")):
        assert preprocessing.input_files(pattern) == [found]


def test_reads_no_further_ahead_than_a_batch(make_job):
    num_read = itertools.count(1)
    reached = []

    def endless(unused_path):
        for number in num_read:
            reached.append(number)
            yield "a"

    job = make_job(["a"], read=endless)
    (file,) = glob.glob(job.input_pattern)
    with contextlib.closing(local._results(job, [file])) as results:
        for count in range(1, 40):
            next(results)
            assert len(reached) - count < local._EXAMPLES_PER_BATCH


@pytest.mark.parametrize("beam_args", [(), BEAM])
@pytest.mark.parametrize(
    ("lines", "strict", "message"),
    [
        (["a", "bad"], True, r"0\.txt: element 1: this is bad"),
        (["bad"], False, "no example is left to write: 1 are malformed, the first: .*0.txt"),
        (["none"], False, "no example is left to write: examples read: 1, dropped: 1"),
        (["a", "broken"], False, r"0\.txt: broken"),
    ],
)
def test_a_failure_names_its_reason_and_leaves_nothing(
    make_job, tmp_path, lines, strict, message, beam_args
):
    with pytest.raises(ValueError, match=message):
        preprocessing.run(make_job(lines, strict=strict, beam_args=beam_args))
    assert written(tmp_path) == []


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error(make_job, tmp_path):
    with pytest.raises(OSError, match="perhaps for want of memory: try fewer"):
        preprocessing.run(make_job(["a", "die"], direct_num_workers=2))
    assert written(tmp_path) == []


def test_an_output_folder_that_cannot_be_made_is_an_error(make_job, tmp_path):
    (tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(OSError, match="out"):
        preprocessing.run(make_job(["a"]))


def test_a_disk_that_is_full_is_an_error_of_one_line_and_the_old_set_stays(make_job, tmp_path):
    preprocessing.run(make_job(["a"]))
    before = contents(tmp_path / "out")
    job = make_job(["long " * 200])
    with files_of_at_most(1000), pytest.raises(OSError, match=r"shard-0000\d; File too large$"):
        preprocessing.run(job)
    assert contents(tmp_path / "out") == before


def test_flags_that_nobody_knows_and_files_that_are_not_there(make_job, tmp_path):
    with pytest.raises(ValueError, match="Unknown flag '--long_seq_len=3'"):
        preprocessing.run(make_job(["a"], beam_args=["--long_seq_len=3"]))
    with pytest.raises(ValueError, match=r"No input file matches .*none\*\.json"):
        preprocessing.run(make_job(["a"], input_pattern=str(tmp_path / "none*.json")))
    patterns = [str(tmp_path / name) for name in ("0.txt", "typo.txt")]
    with pytest.raises(ValueError, match=r"No input file matches .*typo\.txt"):
        preprocessing.run(make_job(["a"], input_pattern=patterns))
    with pytest.raises(ValueError, match="`num_shards` must be at least 1. Received: 0"):
        preprocessing.run(make_job(["a"], num_shards=0))
    assert not (tmp_path / "out").exists()


def test_each_input_file_is_read_once_and_may_have_brackets_in_its_name(make_job, tmp_path):
    (tmp_path / "b[1].txt").write_text("b\n")
    patterns = [str(tmp_path / name) for name in ("b[1].txt", "?.txt", "0.*")]
    statistics = preprocessing.run(make_job(["a"], input_pattern=patterns))
    assert statistics["examples_written"] == 2


def test_a_full_disk_is_an_error_of_one_line_with_beam_too(make_job, tmp_path):
    job = make_job(["long " * 200], beam_args=BEAM)
    message = r"^The Beam pipeline \(--runner=DirectRunner\) failed: /.*File too large$"
    with files_of_at_most(1000), pytest.raises(OSError, match=message):
        preprocessing.run(job)
    assert written(tmp_path) == []


def test_a_folder_counts_as_what_is_in_it(tmp_path, monkeypatch, make_job):
    monkeypatch.setattr(local, "_BYTES_PER_WORKER", 10)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for place in ("one", "two"):
        (tmp_path / "texts" / place).mkdir(parents=True)
        (tmp_path / "texts" / place / "a.txt").write_bytes(b"x" * 20)
    (tmp_path / "other.txt").write_bytes(b"x" * 10)
    job = make_job([], direct_num_workers=0)
    assert local.num_workers(job, [str(tmp_path / "texts")]) == 5
    assert local.num_workers(job, [str(tmp_path / "texts"), str(tmp_path / "other.txt")]) == 6
