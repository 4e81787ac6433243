"""Converts files of any size on one machine in memory that does not grow with them.

Lines are read one at a time, a bounded number of them is with the workers, and the records are
written in the order of the input: record i goes to shard i modulo the number of shards.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import json
import logging
import multiprocessing
import os
import time
import uuid

import tensorflow as tf

from etcmodel import preprocessing

__all__ = ["run"]

_LINES_PER_BATCH = 8
_BATCHES_PER_WORKER = 3
_BYTES_PER_WORKER = 64 << 20  # A worker process takes seconds to start: not for less.
_SECONDS_BETWEEN_REPORTS = 10
_MAX_BAD_EXAMPLES_LISTED = 1000


@dataclasses.dataclass(frozen=True)
class _Result:
    """What became of one line: serialized records, or what is wrong with it."""

    records: tuple
    counts: dict
    lengths: dict
    problem: str = ""


def run(job):
    """Runs a `preprocessing.Job` on this machine, with the same files and statistics as its `run`.

    Args:
        job: `preprocessing.Job` whose `read` yields lines. `beam_args` are not looked at.

    Returns:
        dict. The statistics, as in the file.

    Raises:
        BadExampleError: for malformed input.
        OSError: if the output's folder cannot be written to.
        ValueError: if no file matches.
    """
    files = sorted(tf.io.gfile.glob(job.input_pattern))
    if not files:
        raise ValueError(f"No input file matches {job.input_pattern!r}.")
    folder = f"{job.output_prefix}.unfinished-{uuid.uuid4().hex[:8]}"
    try:
        tf.io.gfile.makedirs(folder)
    except tf.errors.OpError as error:
        raise OSError(f"Cannot write to {job.output_prefix!r}: {error.message}") from error
    try:
        start = time.monotonic()
        statistics = _write_shards(job, files, folder)
        statistics["seconds"] = round(time.monotonic() - start, 1)
        statistics["bad_examples"] = statistics.pop("bad_examples")  # Last, as the longest.
        if not statistics["examples_written"]:
            bad = statistics.pop("bad_examples")
            first = f"; the first malformed one: {bad[0]}" if bad else ""
            raise preprocessing.BadExampleError(
                f"{job.input_pattern}: no example is left to write: {statistics}{first}"
            )
        _move_into_place(job, folder, statistics)
    finally:
        tf.io.gfile.rmtree(folder)
    return statistics


def _write_shards(job, files, folder):
    """Converts all lines; returns the statistics."""
    counts = collections.Counter(examples_read=0, examples_written=0, examples_bad=0)
    totals, bad = collections.Counter(), []
    next_report = time.monotonic() + _SECONDS_BETWEEN_REPORTS
    with contextlib.ExitStack() as stack:
        paths = [os.path.join(folder, f"shard-{i:05d}") for i in range(job.num_shards)]
        writers = [stack.enter_context(tf.io.TFRecordWriter(path)) for path in paths]
        for place, result in _results(job, files):
            counts["examples_read"] += 1
            if result.problem:
                bad.append(f"{place}: {result.problem}")
                if job.strict:
                    raise preprocessing.BadExampleError(bad[-1])
            for record in result.records:
                writers[counts["examples_written"] % job.num_shards].write(record)
                counts["examples_written"] += 1
            counts.update(result.counts)
            totals.update(result.lengths)
            if time.monotonic() > next_report:
                logging.info("%d examples done", counts["examples_read"])
                next_report = time.monotonic() + _SECONDS_BETWEEN_REPORTS
    counts["examples_bad"] = len(bad)
    num_good = max(1, counts["examples_read"] - len(bad))
    means = {f"mean_{name}": round(total / num_good, 2) for name, total in totals.items()}
    return {**counts, **means, "bad_examples": bad[:_MAX_BAD_EXAMPLES_LISTED]}


def _results(job, files):
    """Yields (place, `_Result`) for every line, in order."""
    batches = _batches(job, files)
    size = sum(tf.io.gfile.stat(name).length for name in files)
    num_workers = job.direct_num_workers or min(os.cpu_count() or 1, 1 + size // _BYTES_PER_WORKER)
    if num_workers == 1:
        convert = job.make_converter()
        yield from itertools.chain.from_iterable(_convert_batch(convert, b) for b in batches)
        return
    with concurrent.futures.ProcessPoolExecutor(
        num_workers,
        mp_context=multiprocessing.get_context("spawn"),  # TensorFlow does not survive a fork.
        initializer=_start_worker,
        initargs=(job.make_converter,),
    ) as pool:
        pending = collections.deque()
        try:
            for batch in batches:
                pending.append(pool.submit(_convert_in_worker, batch))
                if len(pending) > num_workers * _BATCHES_PER_WORKER:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _batches(job, files):
    """Yields lists of (place, line)."""
    lines = (
        (f"{path}: element {number}", line)
        for path in files
        for number, line in enumerate(job.read(path))
    )
    while batch := list(itertools.islice(lines, _LINES_PER_BATCH)):
        yield batch


@functools.cache
def _worker_state():
    """What a worker process keeps from batch to batch."""
    return {}


def _start_worker(make_converter):
    _worker_state()["convert"] = make_converter()


def _convert_in_worker(batch):
    return _convert_batch(_worker_state()["convert"], batch)


def _convert_batch(convert, batch):
    return [(place, _convert_line(convert, line)) for place, line in batch]


def _convert_line(convert, line):
    try:
        converted = convert(line)
    except ValueError as error:
        return _Result((), {}, {}, str(error))
    records = tuple(
        preprocessing.to_tf_example(features).SerializeToString(deterministic=True)
        for features in converted.features
    )
    return _Result(records, converted.counts, converted.lengths)


def _move_into_place(job, folder, statistics):
    """Gives the shards their names and writes settings and statistics beside them."""
    names = preprocessing.shard_names(job.output_prefix, job.num_shards)
    for stale in set(tf.io.gfile.glob(f"{job.output_prefix}-?????-of-?????.tfrecord")) - set(names):
        logging.info("Removing %s of an earlier run", stale)
        tf.io.gfile.remove(stale)
    for shard, name in enumerate(names):
        tf.io.gfile.rename(os.path.join(folder, f"shard-{shard:05d}"), name, overwrite=True)
    for name, content in (
        (f"{job.output_prefix}.config.json", job.settings),
        (job.statistics_file, statistics),
    ):
        source = os.path.join(folder, "json")
        with tf.io.gfile.GFile(source, "w") as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        tf.io.gfile.rename(source, name, overwrite=True)
