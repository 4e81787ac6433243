"""The Beam pipeline: read, spread over the shards, convert and write shard by shard."""

import collections
import contextlib
import json
import logging
import os
import re
import zlib

import apache_beam as beam
import grpc
from apache_beam.runners.runner import PipelineState

from etcmodel.preprocessing import worker_files
from etcmodel.preprocessing.records import convert_example

__all__ = ["run_pipeline"]

# The last line of a stack, such as "OSError: [Errno 28] No space left on device".
_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b[^:]*: ?)+(.*)")
_STEP = re.compile(r" \[while running .*\]$")
_ENDED_WELL = (PipelineState.DONE, PipelineState.UNKNOWN, None)  # Some runners report nothing.


def run_pipeline(job, files, folder, flags):
    """Runs the pipeline of a `Job` over `files` to completion.

    Args:
        folder: str. Gets a file `shard-NNNNN` for every shard that has examples, `lines-…` for the
            lines, and the files of `worker_files`.
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
        collected = worker_files.collect(folder, len(files), job.line_files)
    except worker_files.IncompleteError as incomplete:
        reason = worker_files.kept_failure(folder)
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
        with worker_files.failures_kept(self._folder):
            try:
                yield from self._examples(file_number)
            except ValueError as error:
                worker_files.give_up(self._folder, f"{file_number:05d}", str(error))

    def _examples(self, file_number):
        num_per_shard = collections.Counter()
        for number, raw in enumerate(self._read(self._files[file_number])):
            shard = (file_number + number) % self._num_shards
            num_per_shard[shard] += 1
            # Beam's local runner keeps all of these: compressed, a big file fits in memory.
            yield shard, (file_number, number, zlib.compress(json.dumps(raw).encode(), 1))
        worker_files.tell_read(self._folder, file_number, num_per_shard)


class _WriteShard(beam.DoFn):
    """Converts the raw examples of one shard and writes them to a file in the folder."""

    def __init__(self, job, files, folder):
        self._make_converter = job.make_converter
        self._strict = job.strict
        self._line_names = tuple(job.line_files)
        self._files = files
        self._folder = folder

    def setup(self):
        with worker_files.failures_kept(self._folder):
            self._convert = self._make_converter()

    def process(self, element):
        if worker_files.gave_up(self._folder):
            return
        shard, raws = element
        with (
            worker_files.failures_kept(self._folder),
            worker_files.ShardWriter(self._folder, shard, self._line_names) as writer,
        ):
            for file_number, number, raw in sorted(raws):
                converted, records = convert_example(
                    self._convert, json.loads(zlib.decompress(raw))
                )
                problem = ""
                if converted.problem:
                    problem = f"{self._files[file_number]}: element {number}: {converted.problem}"
                if problem and self._strict:
                    order = f"{file_number:05d}-{number:09d}"
                    worker_files.give_up(self._folder, order, problem)
                    return
                writer.write((file_number, number), converted, records, problem)
            writer.finish()
