"""Converts files of any size on one machine, with bounded memory.

Examples are read one at a time, the workers hold a bounded number of them, and the records are
    written in input order: the shards are the same in every run, and the same as from the Beam
    pipeline.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import logging
import multiprocessing
import os
import threading
import time

import tensorflow as tf

from etcmodel import opener, posix_only
from etcmodel.durations import format_duration
from etcmodel.preprocessing.records import BadExampleError, Totals, convert_example, located

_EXAMPLES_PER_BATCH = 8
_BATCHES_PER_WORKER = 3
_BYTES_PER_WORKER = 64 << 20  # Starting a worker process takes many seconds.
_SECONDS_BETWEEN_REPORTS = 10


@dataclasses.dataclass(frozen=True)
class _Result:
    """The result for one example: serialized records, or what is wrong with it."""

    records: tuple = ()
    counts: dict = dataclasses.field(default_factory=dict)
    lengths: dict = dataclasses.field(default_factory=dict)
    lines: dict = dataclasses.field(default_factory=dict)
    problem: str = ""


def num_workers(job, files):
    """Number of local processes for a `Job`: as requested, or by the size of its files."""
    size = _num_bytes(files)
    return job.direct_num_workers or min(os.cpu_count() or 1, 1 + size // _BYTES_PER_WORKER)


def _num_bytes(files):
    return sum(map(_size, files))


def _size(path):
    if not tf.io.gfile.isdir(path):
        return tf.io.gfile.stat(path).length
    inner = (os.path.join(top, name) for top, _, names in tf.io.gfile.walk(path) for name in names)
    return sum(tf.io.gfile.stat(name).length for name in inner)


def run_local(job, files, folder):
    """Converts all examples of `files`.

    Args:
        job: `Job`.
        files: list of str.
        folder: str. Gets a file `shard-NNNNN` for every shard, and `lines-…` for the lines.

    Returns:
        (dict, dict): the statistics (counts, means of lengths, and `bad_examples`, a list of
        messages), and the number of records by number of the shard.

    Raises:
        BadExampleError: for a malformed example, if the job is strict.
        OSError: if a worker process is killed.
        ValueError: for a malformed file.
    """
    totals, bad = Totals(), []
    records_per_shard = collections.Counter()
    start = time.monotonic()
    next_report = start + _SECONDS_BETWEEN_REPORTS
    with contextlib.ExitStack() as stack:
        meter = stack.enter_context(opener.ReadingMeter(_num_bytes(files)).active())
        paths = [os.path.join(folder, f"shard-{shard:05d}") for shard in range(job.num_shards)]
        writers = [stack.enter_context(tf.io.TFRecordWriter(path)) for path in paths]
        line_files = {
            name: stack.enter_context(tf.io.gfile.GFile(os.path.join(folder, f"lines-{name}"), "w"))
            for name in job.line_files
        }
        for file in line_files.values():
            file.write("")  # Creates the file even without lines.
        for (file_number, number), result in _results(job, files):
            if result.problem:
                bad.append(located(result.problem, files[file_number], number))
                if job.strict:
                    raise BadExampleError(bad[-1])
            for index, record in enumerate(result.records):
                dealt = totals.num_written + index
                turn = dealt if job.deals_records else file_number + number
                writers[turn % job.num_shards].write(record)
                records_per_shard[turn % job.num_shards] += 1
            for name, line in result.lines.items():
                line_files[name].write(f"{line}\n")
            totals.add(result, len(result.records))
            if time.monotonic() > next_report:
                next_report = time.monotonic() + _SECONDS_BETWEEN_REPORTS
                logging.info("%s", _progress(totals.num_read, time.monotonic() - start, meter))
    return {**totals.statistics(), "bad_examples": bad}, records_per_shard


def _progress(num_read, seconds, meter):
    """The progress of the work: str."""
    line = f"{num_read} examples done, {num_read / seconds:.1f} a second"
    seconds_left = meter.seconds_left(seconds)
    if seconds_left is not None:
        line += f", time left {format_duration(seconds_left)}"
    return line


def _results(job, files):
    """Yields ((file number, number in the file), `_Result`) for every example, in order."""
    batches = _batches(job, files)
    workers = num_workers(job, files)
    if workers == 1:
        convert = job.make_converter()
        yield from itertools.chain.from_iterable(_convert_batch(convert, b) for b in batches)
        return
    with concurrent.futures.ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),  # TensorFlow does not survive a fork.
        initializer=_start_worker,
        initargs=(job.make_converter,),
    ) as pool:
        pending = collections.deque()
        try:
            for batch in batches:
                with posix_only.held_back():  # A terminal sends Ctrl-C to the workers, too.
                    pending.append(pool.submit(_convert_in_worker, batch))
                if len(pending) > workers * _BATCHES_PER_WORKER:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        except concurrent.futures.process.BrokenProcessPool as error:
            raise OSError(
                "A worker process ended before its work was done, perhaps for want of memory: try "
                "fewer (--direct_num_workers)."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _batches(job, files):
    """Yields lists of ((file number, number in the file), raw example)."""
    raws = (
        ((file_number, number), raw)
        for file_number, path in enumerate(files)
        for number, raw in enumerate(job.read(path))
    )
    while batch := list(itertools.islice(raws, _EXAMPLES_PER_BATCH)):
        yield batch


@functools.cache
def _worker_state():
    """The state that a worker process keeps between batches."""
    return {}


def _start_worker(make_converter):
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker_state()["convert"] = make_converter()


def _end_with_parent():
    """Ends orphaned workers, which would otherwise wait for work forever."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _convert_in_worker(batch):
    return _convert_batch(_worker_state()["convert"], batch)


def _convert_batch(convert, batch):
    return [(place, _convert(convert, raw)) for place, raw in batch]


def _convert(convert, raw):
    converted, records = convert_example(convert, raw)
    return _Result(
        tuple(records), converted.counts, converted.lengths, converted.lines, converted.problem
    )
