"""Dask's runner on a cluster of two processes, and what is left when one of them is killed."""

import json
import pathlib
import shutil
import subprocess

import dask
import distributed
import pytest

from benchmarks import preprocessing_dask
from benchmarks.dask_cluster import RUNNER, Killer, beam_args, local_cluster
from etcmodel import preprocessing
from tests.preprocessing import words
from tests.preprocessing.jobs import files, make
from tests.warm import python as warm

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
SMALL = ROOT / "tests" / "reference" / "small"
VOCAB = SMALL / "vocab" / "bert_uncased_vocab.txt"
LENGTHS = ("--long_seq_length=256", "--global_seq_length=32")
# HotpotQA is that of the benchmark.
PROGRAMS = {"wikihop": ("--dev_input_pattern={raw}/*", "--output_dir={out}", "--num_dev_shards=5")}


def run_program(task, raw, out, *args):
    own = [flag.format(raw=raw, out=out) for flag in PROGRAMS[task]]
    done = subprocess.run(
        [warm.python(), "-m", f"etcmodel.tasks.{task}.preprocess", *own, *LENGTHS, *args]
        + [f"--vocab_file={VOCAB}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def raw_files(task, folder):
    """The task's real raw files, two of them."""
    folder.mkdir()
    first, second = sorted((SMALL / task / "raw").iterdir())
    for path in (first, second):
        shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize("task", sorted(PROGRAMS))
def test_the_shards_are_those_of_the_local_run_even_if_a_worker_is_killed(task, tmp_path):
    raw = raw_files(task, tmp_path / "raw")
    run_program(task, raw, tmp_path / "local")
    expected = files(tmp_path / "local")
    assert sum(name.endswith(".tfrecord") for name in expected) == 5
    with local_cluster() as cluster:
        run_program(task, raw, tmp_path / "two", *beam_args(cluster))
        assert files(tmp_path / "two") == expected
        killer = Killer(cluster)
        cluster.scheduler.add_plugin(killer)
        run_program(task, raw, tmp_path / "one", *beam_args(cluster))
        assert len(killer.killed) == 1
        assert files(tmp_path / "one") == expected


@pytest.mark.exhaustive
def test_the_benchmark_finds_the_bytes_equal_after_a_kill(tmp_path, capsys):
    options = preprocessing_dask.DaskOptions(
        source=str(SMALL / "hotpotqa" / "raw" / "labelled.json"),
        vocab_file=str(VOCAB),
        megabytes=0.1,
        num_shards=5,
        folder=str(tmp_path),
    )
    preprocessing_dask.main(options)
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is True and found["killed"] == 1 and found["megabytes"] >= 0.1
    assert list(tmp_path.iterdir()) == []


def test_digests_tell_files_apart_but_not_by_their_time(tmp_path):
    for name, seconds, record in (("one", 1, b"a"), ("two", 2, b"a"), ("three", 1, b"b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.stats.json").write_text(json.dumps({"n": 3, "seconds": seconds}))
        (tmp_path / name / "x-0").write_bytes(record)
    one, two, three = (preprocessing_dask.digests(tmp_path / x) for x in ("one", "two", "three"))
    assert one == two != three and set(one) == {"x.stats.json", "x-0"}


def check_no_client_is_open():
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


@pytest.mark.exhaustive
def test_an_example_that_kills_every_worker_ends_in_one_line_and_a_rerun_completes(tmp_path):
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), local_cluster() as cluster:
        args = tuple(beam_args(cluster))
        with pytest.raises(OSError, match="workers died while running it") as caught:
            preprocessing.run(make(tmp_path, ["a", "die"], beam_args=args))
        assert str(caught.value).startswith(f"The Beam pipeline ({RUNNER}) failed: ")
        assert "\n" not in str(caught.value)
        assert list((tmp_path / "out").iterdir()) == []
        check_no_client_is_open()
        statistics = preprocessing.run(
            make(tmp_path, ["a", "b"], beam_args=tuple(beam_args(cluster)))
        )
        check_no_client_is_open()
    assert statistics["examples_written"] == 2


def test_a_full_disk_of_the_workers_is_one_line_and_loses_no_set_that_was_complete(tmp_path):
    full, out = tmp_path / "full", tmp_path / "out"
    preprocessing.run(make(tmp_path, ["old one", "old two"], num_shards=3))
    before = files(out)
    lines, make_converter = ["short", "long " * 200], words.OnAFullDisk(str(full))
    with local_cluster() as cluster:
        args = tuple(beam_args(cluster))
        job = make(tmp_path, lines, beam_args=args, make_converter=make_converter)
        full.touch()
        with pytest.raises(OSError, match="File too large$") as caught:
            preprocessing.run(job)
        assert str(caught.value).startswith(f"The Beam pipeline ({RUNNER}) failed: ")
        assert "\n" not in str(caught.value)
        assert files(out) == before and sorted(out.iterdir()) == sorted(map(out.joinpath, before))
        full.unlink()
        statistics = preprocessing.run(job)
    assert statistics["examples_written"] == 201
    found = files(out)
    preprocessing.run(make(tmp_path, lines))
    assert found == files(out)


def test_a_scheduler_that_does_not_answer_is_named(tmp_path):
    args = [RUNNER, "--dask_client_address=tcp://127.0.0.1:1", "--dask_connection_timeout=1"]
    message = r"Timed out .*Is the service of --dask_client_address=tcp://127.0.0.1:1 up\?$"
    with pytest.raises(OSError, match=message):
        preprocessing.run(make(tmp_path, ["a"], beam_args=tuple(args)))
    assert list((tmp_path / "out").iterdir()) == []
