"""The Beam pipeline: read, spread over the shards, convert and write shard by shard."""

import collections
import contextlib
import glob
import heapq
import json
import logging
import os
import re
import uuid
import zlib

import apache_beam as beam
import grpc
import tensorflow as tf
from apache_beam.runners.runner import PipelineState

from etcmodel import program_end
from etcmodel.preprocessing.records import BadExampleError, Totals, convert_example, located

# The files that workers of a pipeline leave in its folder, and their evaluation.
#
# Runners differ in what they report about finished work, and some report nothing. So completeness
# and counts are read from files alone. A worker may die at any point, and another may repeat its
# work, even at the same time: a file gets its name when it is complete, and the file that marks a
# shard as done is written last.


class IncompleteError(Exception):
    """Raised if some of the work is not done; the message says how much."""


def give_up(folder, order, message):
    """Stops the workers. Exceptions would be retried, and logged with Beam's whole stack.

    Args:
        folder: str. The pipeline's.
        order: str. Sort key: of several workers' messages, the first is reported.
        message: str. What is wrong with the input.
    """
    _write(folder, f"error-{order}", message)


def gave_up(folder):
    """Whether a worker gave up."""
    return bool(_names(folder, "error-*"))


def tell_read(folder, file_number, num_per_shard):
    """Records that an input file is fully read, and how many of its examples each shard gets."""
    _write(folder, f"read-{file_number:05d}.json", json.dumps(sorted(num_per_shard.items())))


@contextlib.contextmanager
def failures_kept(folder):
    """Stores a worker's error in one line, since runners report errors differently, or not."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(Exception):  # The folder itself may not be writable.
            _write(folder, f"failure-{uuid.uuid4().hex}", _line(error))
        raise


def _line(error):
    says_enough = isinstance(error, OSError | tf.errors.OpError | MemoryError)
    kind = "" if says_enough else f"{type(error).__name__}: "
    return kind + program_end.error_line(error)


def kept_failure(folder):
    """The error of a worker that failed: str; '' if none did."""
    return next(map(_read, _names(folder, "failure-*")), "")


class ShardWriter:
    """Writes one shard, its lines and its statistics; a context manager.

    Args:
        folder: str. The pipeline's.
        shard: int. Its number.
        line_names: names of the files of lines.
    """

    def __init__(self, folder, shard, line_names):
        self._folder, self._shard = folder, shard
        self._totals, self._bad = Totals(), []
        self._open_files = contextlib.ExitStack()
        mark = uuid.uuid4().hex
        self._unfinished = {
            f"part-{shard:05d}-{name}": f"unfinished-{mark}-{name}" for name in line_names
        }
        self._lines = {
            name: self._open(tf.io.gfile.GFile(self._path(f"unfinished-{mark}-{name}"), "w"))
            for name in line_names
        }
        self._unfinished[f"shard-{shard:05d}"] = f"unfinished-{mark}"
        self._records = self._open(tf.io.TFRecordWriter(self._path(f"unfinished-{mark}")))

    def _open(self, file):
        return self._open_files.enter_context(file)

    def _path(self, name):
        return os.path.join(self._folder, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._open_files.close()

    def write(self, place, converted, records, problem):
        """Writes the result for one example.

        Args:
            place: (number of the file, number in it).
            converted: `Converted`.
            records: list of bytes.
            problem: str. The problem with the example and its place; '' for none.
        """
        for record in records:
            self._records.write(record)
        for name, line in converted.lines.items():
            self._lines[name].write(json.dumps([*place, line]) + "\n")
        if problem:
            self._bad.append([*place, problem])
        self._totals.add(converted, len(records))

    def finish(self):
        """Moves the files to their final names."""
        self._open_files.close()
        for name, unfinished in self._unfinished.items():
            if tf.io.gfile.exists(self._path(unfinished)):  # A file without lines may not exist.
                tf.io.gfile.rename(self._path(unfinished), self._path(name), overwrite=True)
        done = {"number": self._shard, "totals": self._totals.as_dict(), "bad": self._bad}
        _write(self._folder, f"done-{self._shard:05d}.json", json.dumps(done))


def collect(folder, num_files, line_names):
    """Combines the results of all workers; the lines go to files `lines-…`.

    Args:
        folder: str. The pipeline's.
        num_files: int. Input files.
        line_names: names of the files of lines.
    Returns:
        (dict, dict): the statistics (counts, means of lengths, and `bad_examples`, a list of
        messages), and the number of records by number of the shard.
    Raises:
        BadExampleError: if a worker gave up.
        IncompleteError: if not all of the input is read, or not all that was read is written.
    """
    for name in _names(folder, "error-*"):
        raise BadExampleError(_read(name))
    done = [json.loads(_read(name)) for name in _names(folder, "done-*.json")]
    _check_complete(folder, num_files, {shard["number"]: shard["totals"]["read"] for shard in done})
    for name in line_names:
        _merge_lines(folder, name)
    totals = Totals()
    for shard in done:
        totals.merge(shard["totals"])
    bad = sorted(entry for shard in done for entry in shard["bad"])  # In input order.
    statistics = {**totals.statistics(), "bad_examples": [message for *_, message in bad]}
    return statistics, {shard["number"]: shard["totals"]["written"] for shard in done}


def _check_complete(folder, num_files, num_written):
    """Compares the examples read for each shard with those written."""
    read = [json.loads(_read(name)) for name in _names(folder, "read-*.json")]
    num_read = collections.Counter()
    for num_per_shard in read:
        num_read.update(dict(num_per_shard))
    num_undone = sum(num_written.get(shard) != num for shard, num in num_read.items())
    if len(read) < num_files or num_undone:
        raise IncompleteError(
            f"{len(read)} of {num_files} input files are read to their end, and "
            f"{len(num_read) - num_undone} of the {len(num_read)} shards of their examples are "
            "written whole."
        )


def _merge_lines(folder, name):
    """The lines of all shards, in input order."""
    with contextlib.ExitStack() as stack:
        parts = [
            map(json.loads, stack.enter_context(tf.io.gfile.GFile(part)))
            for part in _names(folder, f"part-?????-{name}")
        ]
        file = stack.enter_context(tf.io.gfile.GFile(os.path.join(folder, f"lines-{name}"), "w"))
        file.write("")  # Creates the file even without lines.
        for *_, line in heapq.merge(*parts):
            file.write(f"{line}\n")


def _names(folder, pattern):
    return sorted(tf.io.gfile.glob(os.path.join(glob.escape(folder), pattern)))


def _read(name):
    with tf.io.gfile.GFile(name) as file:
        return file.read()


def _write(folder, name, text):
    unfinished = os.path.join(folder, f"unfinished-{uuid.uuid4().hex}")
    with tf.io.gfile.GFile(unfinished, "w") as file:
        file.write(text)
    tf.io.gfile.rename(unfinished, os.path.join(folder, name), overwrite=True)


# The pipeline.


# The last line of a stack, such as "OSError: [Errno 28] No space left on device".
_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b[^:]*: ?)+(.*)")
_STEP = re.compile(r" \[while running .*\]$")
_ENDED_WELL = (PipelineState.DONE, PipelineState.UNKNOWN, None)  # Some runners report nothing.


def run_pipeline(job, files, folder, flags):
    """Runs the pipeline of a `Job` over `files` to completion.

    Args:
        folder: str. Gets a file `shard-NNNNN` for every shard that has examples, `lines-…` for the
            lines, and the files of the workers.
        flags: `beam_flags.BeamFlags` of the job.

    Returns:
        (dict, dict): the statistics (counts, means of lengths, and `bad_examples`, a list of
        messages), and the number of records by number of the shard.

    Raises:
        BadExampleError: for malformed input.
        OSError: if the runner fails before everything is done, for example because of a worker.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # For the local workers.
    failure = None
    try:
        _run(job, files, folder, flags)
    except Exception as error:
        failure = error
    try:
        collected = collect(folder, len(files), job.line_files)
    except IncompleteError as incomplete:
        reason = kept_failure(folder)
        if not reason and failure:
            reason = _reason(failure)
            if flags.services:
                reason = f"{reason.removesuffix('.')}. {flags.services_question()}"
        reason = reason or f"it ended, but only {incomplete}"
        raise OSError(f"The Beam pipeline ({flags.runner_flag}) failed: {reason}") from failure
    if failure:
        logging.warning("All is done, but %s says: %s", flags.runner_flag, _reason(failure))
    return collected


def _run(job, files, folder, flags):
    """Runs the pipeline; the runner's exceptions are passed on."""
    pipeline = beam.Pipeline(runner=flags.runner, options=flags.options)
    _ = (
        pipeline
        | "Files" >> beam.Create(list(range(len(files))))
        | "SpreadFiles" >> beam.Reshuffle()
        | "Read" >> beam.ParDo(_ReadFile(job, files, folder))
        | "Spread" >> beam.GroupByKey()
        | "Convert" >> beam.ParDo(_WriteShard(job, files, folder))
    )
    result = pipeline.run()
    try:
        state = result.wait_until_finish() or result.state
    except NotImplementedError:
        return  # Everything was done in `run`, or the missing parts will be noticed.
    except BaseException:
        with contextlib.suppress(Exception):  # Not all runners can.
            result.cancel()
        raise
    finally:
        _disconnect(result)
    if state not in _ENDED_WELL:
        raise OSError(f"its job ended as {state}")


def _disconnect(result):
    """Closes the client that Dask's runner leaves open; it would complain when the cluster ends."""
    client = getattr(result, "client", None)
    if hasattr(client, "close"):
        with contextlib.suppress(Exception):  # The work is done.
            client.close()


def _reason(error):
    """The error in one line; runners put a worker's error at the end of its stack trace."""
    text = error.details() if isinstance(error, grpc.Call) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not any(line.startswith("Traceback ") for line in lines):
        return _STEP.sub("", " ".join(lines)) or type(error).__name__
    told = [match[1] for match in map(_EXCEPTION.match, lines) if match and match[1]]
    return _STEP.sub("", (told or lines)[-1])


class _ReadFile(beam.DoFn):
    """Maps a file number to (shard, (file number, number in the file, compressed JSON example))."""

    def __init__(self, job, files, folder):
        self._read = job.read
        self._num_shards = job.num_shards
        self._files = files
        self._folder = folder

    def process(self, file_number):
        with failures_kept(self._folder):
            try:
                yield from self._examples(file_number)
            except ValueError as error:
                give_up(self._folder, f"{file_number:05d}", str(error))

    def _examples(self, file_number):
        num_per_shard = collections.Counter()
        for number, raw in enumerate(self._read(self._files[file_number])):
            shard = (file_number + number) % self._num_shards
            num_per_shard[shard] += 1
            # Beam's local runner keeps all of these: compressed, a big file fits in memory.
            yield shard, (file_number, number, zlib.compress(json.dumps(raw).encode(), 1))
        tell_read(self._folder, file_number, num_per_shard)


class _WriteShard(beam.DoFn):
    """Converts the raw examples of one shard and writes them to a file in the folder."""

    def __init__(self, job, files, folder):
        self._make_converter = job.make_converter
        self._strict = job.strict
        self._line_names = tuple(job.line_files)
        self._files = files
        self._folder = folder

    def setup(self):
        with failures_kept(self._folder):
            self._convert = self._make_converter()

    def process(self, element):
        if gave_up(self._folder):
            return
        shard, raws = element
        with (
            failures_kept(self._folder),
            ShardWriter(self._folder, shard, self._line_names) as writer,
        ):
            for file_number, number, raw in sorted(raws):
                converted, records = convert_example(
                    self._convert, json.loads(zlib.decompress(raw))
                )
                problem = ""
                if converted.problem:
                    problem = located(converted.problem, self._files[file_number], number)
                if problem and self._strict:
                    order = f"{file_number:05d}-{number:09d}"
                    give_up(self._folder, order, problem)
                    return
                writer.write((file_number, number), converted, records, problem)
            writer.finish()
