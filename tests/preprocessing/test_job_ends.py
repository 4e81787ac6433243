"""Jobs that are killed, stopped or run at once: what is there is one whole run, or an error."""

import contextlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from unittest import mock

import pytest
import tensorflow as tf

from etcmodel import atomic_files, preprocessing, record_files
from tests.preprocessing.jobs import contents, fields_of, written

pytestmark = pytest.mark.slow

# Dies at a step of moving the shards into place, by its number.
DIE = """
import json, os, signal, sys
import tensorflow as tf
from etcmodel import atomic_files, preprocessing
from tests.preprocessing import words
steps = int(sys.argv[2])

def dying(function):
    def call(*args, **kwargs):
        global steps
        if steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        steps -= 1
        return function(*args, **kwargs)
    return call

os.replace = dying(os.replace)
preprocessing.run(preprocessing.Job(read=words.read, make_converter=words.make_converter,
                                    **json.loads(sys.argv[1])))
"""


NUM_WRITTEN = 2  # Files of settings and of statistics, which get their names before the moves.


def check_one_run_or_an_error(job):
    """What is there is read as one whole run, or refused, and settings are those of the shards."""
    try:
        files = record_files.matching_files(f"{job.output_prefix}*")
    except ValueError:
        assert not pathlib.Path(f"{job.output_prefix}.config.json").exists()
        return []
    record_files.check_sizes(files)
    records = [record.numpy() for record in tf.data.TFRecordDataset(files)]
    examples = [tf.train.Example.FromString(record) for record in records]
    words_read = [e.features.feature["word"].bytes_list.value[0].decode() for e in examples]
    assert len({word[0] for word in words_read}) == 1, "a mixture of the runs"
    return words_read


def test_a_failure_while_moving_leaves_no_mixture_and_no_settings_of_other_shards(
    make_job, tmp_path
):
    # The list of moves gets its name; shards, lines, statistics and settings go and come.
    num_moves = NUM_WRITTEN + 1 + (3 + 2 + 2) + (2 + 2 + 2)
    lines = {name: str(tmp_path / "out" / f"{name}.lines") for name in ("kept", "left_out")}
    steps = []
    for step in range(num_moves + 1):
        preprocessing.run(make_job(["o1 o2 o3"], num_shards=3, line_files=lines))
        job = make_job(["n1 n2"], num_shards=2, line_files=lines)
        calls = itertools.count()

        def failing(function, calls=calls, step=step):
            def call(*args, **kwargs):
                if next(calls) == step:
                    raise OSError("no space left")
                return function(*args, **kwargs)

            return call

        with mock.patch.object(os, "replace", failing(os.replace)), contextlib.suppress(OSError):
            preprocessing.run(job)
        steps.append("".join(sorted({word[0] for word in check_one_run_or_an_error(job)})))
        if steps[-1]:
            assert pathlib.Path(job.line_files["kept"]).read_text()[0] == steps[-1]
    assert steps == ["o"] * num_moves + ["n"]


@pytest.mark.parametrize(("step", "expected"), [(NUM_WRITTEN, "o"), (NUM_WRITTEN + 3, "n")])
@pytest.mark.slow_cases(1)
def test_a_run_that_is_killed_is_completed_by_who_reads_and_cleaned_up_by_the_next(
    make_job, tmp_path, step, expected
):
    preprocessing.run(make_job(["o1 o2 o3"], num_shards=3))
    job = make_job(["n1 n2"], num_shards=2)
    killed = subprocess.run([sys.executable, "-c", DIE, json.dumps(fields_of(job)), str(step)])
    assert killed.returncode == -signal.SIGKILL
    assert any(".unfinished-" in name for name in written(tmp_path))
    assert {word[0] for word in check_one_run_or_an_error(job)} == {expected}
    preprocessing.run(job)
    names = [f"train-0000{shard}-of-00002.tfrecord" for shard in range(2)]
    assert written(tmp_path) == ["stats.json", *names, "train.config.json"]
    assert sorted(check_one_run_or_an_error(job)) == ["n1", "n2"]


# Its process dies while workers have work, and names them.
DIE_WITH_WORKERS = """
import json, multiprocessing, os, signal, sys
from etcmodel import preprocessing
from tests.preprocessing import words

def read(path):
    yield from ["a"] * 40
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    preprocessing.run(preprocessing.Job(read=read, make_converter=words.make_converter,
                                        **json.loads(sys.argv[1])))
"""


def test_workers_end_with_a_process_that_is_killed(make_job, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(DIE_WITH_WORKERS)
    fields = json.dumps(fields_of(make_job(["a"], direct_num_workers=2)))
    process = subprocess.Popen(
        [sys.executable, script, fields],
        env={**os.environ, "PYTHONPATH": os.getcwd()},  # For `tests`.
        stdout=subprocess.PIPE,
        text=True,
    )
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    try:
        process.communicate(timeout=600)  # Until the last one has closed its output.
    except subprocess.TimeoutExpired:
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        raise
    assert process.returncode == -signal.SIGKILL


def test_runs_of_the_same_prefix_put_their_files_there_one_after_the_other(make_job, tmp_path):
    job = make_job(["a"])
    run = threading.Thread(target=preprocessing.run, args=(job,))
    (tmp_path / "out").mkdir()
    with atomic_files.alone_in(str(tmp_path / "out")):
        run.start()
        run.join(1)
        assert not any(name.endswith(".tfrecord") for name in written(tmp_path))
    run.join()
    assert check_one_run_or_an_error(job) == ["a"]


def test_another_run_of_the_same_prefix_does_not_lose_its_unfinished_files(make_job, tmp_path):
    job = make_job(["a"])
    with atomic_files.scratch_folder(job.output_prefix) as others:
        preprocessing.run(job)
        assert pathlib.Path(others).is_dir()
    assert not pathlib.Path(others).exists()


# Its whole group of processes gets a signal, as from a terminal, while workers have work.
STOP_WITH_WORKERS = """
import json, os, signal, sys
from etcmodel import preprocessing, program_end
from tests.preprocessing import words

def read(path):
    yield from ["a"] * 40
    os.killpg(0, getattr(signal, sys.argv[2]))
    yield from ["a"] * 40

if __name__ == "__main__":
    with program_end.ends_in_one_line():
        preprocessing.run(preprocessing.Job(read=read, make_converter=words.make_converter,
                                            **json.loads(sys.argv[1])))
"""


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize(
    ("signal_name", "num_workers"), [("SIGINT", 2), ("SIGINT", 1), ("SIGTERM", 1)]
)
def test_a_run_that_is_stopped_ends_in_one_line_and_leaves_the_old_set(
    make_job, tmp_path, signal_name, num_workers
):
    preprocessing.run(make_job(["old"]))
    before = contents(tmp_path / "out")
    script = tmp_path / "script.py"
    script.write_text(STOP_WITH_WORKERS)
    fields = json.dumps(fields_of(make_job(["a"], direct_num_workers=num_workers)))
    done = subprocess.run(
        [sys.executable, script, fields, signal_name],
        env={**os.environ, "PYTHONPATH": os.getcwd(), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=600,
    )
    assert (done.stderr, done.returncode) == ("interrupted\n", 128 + getattr(signal, signal_name))
    assert contents(tmp_path / "out") == before
