"""Jobs: streamed on this machine or done by Beam, with the same files, and nothing half-written."""

import contextlib
import dataclasses
import glob
import itertools
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
from unittest import mock

import pytest
import tensorflow as tf
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import fn_runner

from etcmodel import atomic_files, preprocessing, record_files
from etcmodel.preprocessing import local, pipeline
from tests.preprocessing import words

BEAM = ("--runner=DirectRunner",)


@pytest.fixture
def make_job(tmp_path):
    """A function of the files' lines (and fields) to a `Job` over them."""

    def make(*files, **fields):
        for number, lines in enumerate(files):
            text = "".join(f"{line}\n" for line in lines)
            (tmp_path / f"{number}.txt").write_text(text)
        defaults = {
            "input_pattern": str(tmp_path / "?.txt"),
            "output_prefix": str(tmp_path / "out" / "train"),
            "num_shards": 2,
            "read": words.read,
            "make_converter": words.make_converter,
            "settings": {"task": "toy"},
            "statistics_file": str(tmp_path / "out" / "stats.json"),
            "direct_num_workers": 1,
            "line_files": {name: str(tmp_path / f"{name}.lines") for name in ("kept", "left_out")},
        }
        return preprocessing.Job(**{**defaults, **fields})

    return make


def written(folder):
    return sorted(path.name for path in (folder / "out").iterdir())


def shards(job):
    names = record_files.shard_names(job.output_prefix, job.num_shards)
    return [pathlib.Path(name).read_bytes() for name in names]


def manifest(job):
    with open(f"{job.output_prefix}.config.json", encoding="utf-8") as file:
        return json.load(file)["records_per_shard"]


def num_records(job):
    """Of each shard, counted."""
    names = record_files.shard_names(job.output_prefix, job.num_shards)
    return [sum(1 for _ in tf.data.TFRecordDataset(name)) for name in names]


LINES = (["a b", "bad", "c", "none", "d e f"], ["g", *(f"w{i}" for i in range(30)), "bad", "worse"])


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
    assert settings == {
        "task": "toy",
        "records_per_shard": [1, 0, 0],
        "bytes_per_shard": sizes,
    }


def test_a_new_run_replaces_all_files_of_the_old_one(make_job, tmp_path):
    preprocessing.run(make_job(["a"], num_shards=5))
    preprocessing.run(make_job(["a"], num_shards=2))
    records = [name for name in written(tmp_path) if name.endswith(".tfrecord")]
    assert records == ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"]


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
    before = {name: (tmp_path / "out" / name).read_bytes() for name in written(tmp_path)}
    job = make_job(["long " * 200])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"shard-0000\d; File too large$"):
            preprocessing.run(job)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {name: (tmp_path / "out" / name).read_bytes() for name in written(tmp_path)} == before


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


def test_beams_own_runner_needs_no_download():
    for args in ([], ["--runner=DirectRunner"]):
        assert isinstance(pipeline._runner(PipelineOptions(args)), fn_runner.FnApiRunner)
    assert pipeline._runner(PipelineOptions(["--runner=DataflowRunner"])) is None


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

tf.io.gfile.rename, tf.io.gfile.remove = map(dying, (tf.io.gfile.rename, tf.io.gfile.remove))
preprocessing.run(preprocessing.Job(read=words.read, make_converter=words.make_converter,
                                    **json.loads(sys.argv[1])))
"""


def fields_of(job):
    """The job's fields that JSON can hold."""
    fields = {field.name: getattr(job, field.name) for field in dataclasses.fields(job)}
    return {name: value for name, value in fields.items() if not callable(value)}


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


def test_a_failure_while_moving_leaves_no_mixture_and_no_settings_of_other_shards(make_job):
    num_moves = 3 + 1 + 2 + 2  # Old shards and settings go; new lines and shards come.
    steps = []
    for step in range(num_moves + 1):
        preprocessing.run(make_job(["o1 o2 o3"], num_shards=3))
        job = make_job(["n1 n2"], num_shards=2)
        calls = itertools.count()

        def failing(function, calls=calls, step=step):
            def call(*args, **kwargs):
                if next(calls) == step:
                    raise OSError("no space left")
                return function(*args, **kwargs)

            return call

        with (
            mock.patch.object(tf.io.gfile, "rename", failing(tf.io.gfile.rename)),
            mock.patch.object(tf.io.gfile, "remove", failing(tf.io.gfile.remove)),
            contextlib.suppress(OSError),
        ):
            preprocessing.run(job)
        steps.append("".join(sorted({word[0] for word in check_one_run_or_an_error(job)})))
        if steps[-1]:
            assert pathlib.Path(job.line_files["kept"]).read_text()[0] == steps[-1]
    # The old run, then an error for each part of a set, then the new run.
    assert steps == ["o", "o", "", "", "", "", "", "", "n"]


@pytest.mark.parametrize("step", [2, 7])
def test_a_run_that_is_killed_is_told_from_a_whole_one_and_cleaned_up_by_the_next(
    make_job, tmp_path, step
):
    preprocessing.run(make_job(["o1 o2 o3"], num_shards=3))
    job = make_job(["n1 n2"], num_shards=2)
    killed = subprocess.run([sys.executable, "-c", DIE, json.dumps(fields_of(job)), str(step)])
    assert killed.returncode == -signal.SIGKILL
    assert any(".unfinished-" in name for name in written(tmp_path))
    with pytest.raises(ValueError, match="Missing: "):
        record_files.matching_files(f"{job.output_prefix}-*")
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
        process.communicate(timeout=120)  # Until the last one has closed its output.
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
