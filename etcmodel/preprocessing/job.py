"""Runs a raw-file conversion: sharded TFRecords, statistics, settings.

It is done on this machine (`local`), or, with flags of Apache Beam, as a Beam pipeline; the shards
are the same. Everything is written below a temporary folder and moved at the end.
"""

import dataclasses
import functools
import json
import logging
import os
import time
import uuid

import tensorflow as tf

from etcmodel import record_files
from etcmodel.preprocessing import local
from etcmodel.preprocessing.records import BadExampleError

__all__ = ["Job", "run"]

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
        beam_args: list of str. Beam's own flags, such as `--runner=DataflowRunner`; with any of
            them, Beam does the work.
        deals_records: bool. Where the work is done on this machine, give the shards the records in
            turn, not the examples with all of their records.
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
    deals_records: bool = False


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
    run_examples = _beam_runner(job, files) if job.beam_args else local.run_local
    folder = f"{job.output_prefix}.unfinished-{uuid.uuid4().hex[:8]}"
    try:
        tf.io.gfile.makedirs(folder)
    except tf.errors.OpError as error:
        raise OSError(f"Cannot write to {job.output_prefix!r}: {error.message}") from error
    start = time.monotonic()
    try:
        statistics = run_examples(job, files, folder)
        bad_examples = statistics.pop("bad_examples")[:_MAX_BAD_EXAMPLES_LISTED]
        statistics["seconds"] = round(time.monotonic() - start, 1)
        statistics["bad_examples"] = bad_examples  # Last, as the longest.
        _check_written(job, statistics)
        _move_into_place(job, folder, statistics)
    finally:
        tf.io.gfile.rmtree(folder)
    return statistics


def _beam_runner(job, files):
    """`pipeline.run_pipeline` with the job's flags, which are checked here."""
    from etcmodel.preprocessing import pipeline  # Beam takes seconds to import.

    return functools.partial(pipeline.run_pipeline, options=pipeline.pipeline_options(job, files))


def _check_written(job, statistics):
    if not statistics["examples_written"]:
        raise BadExampleError(
            f"{job.input_pattern}: no example is left to write: {_why_none(statistics)}"
        )


def _why_none(statistics):
    """In words, from the counts."""
    if not statistics["examples_read"]:
        return "the input holds none."
    if bad := statistics["bad_examples"]:
        return f"{len(bad)} are malformed, the first: {bad[0]}"
    counts = {
        name.replace("_", " "): value
        for name, value in statistics.items()
        if isinstance(value, int) and value
    }
    return ", ".join(f"{name}: {value}" for name, value in counts.items()) + "."


def _move_into_place(job, folder, statistics):
    """Gives the shards their names and writes settings and statistics beside them."""
    names = record_files.shard_names(job.output_prefix, job.num_shards)
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
