"""Runs a raw-file conversion as a Beam pipeline: sharded TFRecords, statistics, settings.

The raw examples are spread over the shards, and each shard is then converted and written by one
worker, in the order of the input: no converted example is ever held or sent around, and the shards
are the same in every run. Everything is written below a temporary folder and moved at the end.
"""

import contextlib
import dataclasses
import json
import logging
import os
import threading
import time
import uuid

import tensorflow as tf

from etcmodel.preprocessing import pipeline
from etcmodel.preprocessing.records import BadExampleError

__all__ = ["Job", "run", "shard_names"]

_SECONDS_BETWEEN_REPORTS = 5
_MAX_BAD_EXAMPLES_LISTED = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """What to convert, how, and where to.

    Attributes:
        input_pattern: str. A file, or a pattern such as `train_*.json`.
        output_prefix: str. The shards are `<prefix>-00000-of-000NN.tfrecord` and so on.
        num_shards: int. Files to write; all are written, even if some stay empty.
        read: function of a path that yields raw examples as JSON-like dicts.
        make_converter: function that returns a function of a raw example to a `Converted`. Called
            once a worker; the inner one raises a ValueError for a malformed example.
        settings: dict. Written to `<prefix>.config.json`, for the programs that read the shards.
        statistics_file: str. Where the statistics go, as JSON.
        strict: bool. Fail at a malformed example instead of counting and listing it.
        direct_num_workers: int. Local processes; 0 for as many as there are cores.
        beam_args: list of str. Beam's own flags, such as `--runner=DataflowRunner`.
    """

    input_pattern: str
    output_prefix: str
    num_shards: int
    read: object
    make_converter: object
    settings: dict
    statistics_file: str
    strict: bool = False
    direct_num_workers: int = 0
    beam_args: tuple = ()


def shard_names(prefix, num_shards):
    """The names of the files that a job writes."""
    return [f"{prefix}-{i:05d}-of-{num_shards:05d}.tfrecord" for i in range(num_shards)]


def run(job):
    """Runs a `Job`.

    Returns:
        dict. The statistics, as in the file.

    Raises:
        OSError: if the output's folder cannot be written to.
        ValueError: for malformed flags, no input file, malformed input, or if nothing is left.
    """
    if job.num_shards < 1:
        raise ValueError(f"`num_shards` must be at least 1. Received: {job.num_shards}")
    files = sorted(tf.io.gfile.glob(job.input_pattern))
    if not files:
        raise ValueError(f"No input file matches {job.input_pattern!r}.")
    options = pipeline.pipeline_options(job, files)
    folder = f"{job.output_prefix}.unfinished-{uuid.uuid4().hex[:8]}"
    try:
        tf.io.gfile.makedirs(folder)
    except tf.errors.OpError as error:
        raise OSError(f"Cannot write to {job.output_prefix!r}: {error.message}") from error
    start = time.monotonic()
    try:
        with _progress_lines(folder):
            statistics = pipeline.run_pipeline(job, files, folder, options)
        statistics["seconds"] = round(time.monotonic() - start, 1)
        statistics["bad_examples"] = _read_bad_examples(folder)
        _check_written(job, statistics)
        _move_into_place(job, folder, statistics)
    finally:
        tf.io.gfile.rmtree(folder)
    return statistics


@contextlib.contextmanager
def _progress_lines(folder):
    """Logs every few seconds how many examples are done: a byte each in the progress files.

    Runs elsewhere have no such files, but Beam's own reports.
    """
    done = threading.Event()

    def report():
        start = time.monotonic()
        while not done.wait(_SECONDS_BETWEEN_REPORTS):
            pattern = os.path.join(folder, "progress-*")
            with contextlib.suppress(tf.errors.OpError):
                count = sum(tf.io.gfile.stat(name).length for name in tf.io.gfile.glob(pattern))
                rate = count / (time.monotonic() - start)
                logging.info("%d examples done, %.1f a second", count, rate)

    if not pipeline.is_local(folder):
        yield
        return
    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _read_bad_examples(folder):
    messages = []
    for name in sorted(tf.io.gfile.glob(os.path.join(folder, "bad-*.json"))):
        with tf.io.gfile.GFile(name) as file:
            messages += json.load(file)
    return sorted(messages)[:_MAX_BAD_EXAMPLES_LISTED]


def _check_written(job, statistics):
    if not statistics["examples_written"]:
        bad = statistics["bad_examples"]
        counts = {name: value for name, value in statistics.items() if name != "bad_examples"}
        raise BadExampleError(
            f"{job.input_pattern}: no example is left to write: "
            + (f"{len(bad)} are malformed, the first: {bad[0]}" if bad else f"{counts}")
        )


def _move_into_place(job, folder, statistics):
    """Gives the shards their names and writes settings and statistics beside them."""
    names = shard_names(job.output_prefix, job.num_shards)
    for stale in set(tf.io.gfile.glob(f"{job.output_prefix}-?????-of-?????.tfrecord")) - set(names):
        logging.info("Removing %s of an earlier run", stale)
        tf.io.gfile.remove(stale)
    for shard, name in enumerate(names):
        source = os.path.join(folder, f"shard-{shard:05d}")
        if not tf.io.gfile.exists(source):
            tf.io.TFRecordWriter(source).close()
        tf.io.gfile.rename(source, name, overwrite=True)
    for name, content in (
        (f"{job.output_prefix}.config.json", job.settings),
        (job.statistics_file, statistics),
    ):
        source = os.path.join(folder, "json")
        with tf.io.gfile.GFile(source, "w") as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        tf.io.gfile.rename(source, name, overwrite=True)
