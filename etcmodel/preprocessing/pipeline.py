"""The Beam pipeline: read, spread over the shards, convert and write shard by shard."""

import contextlib
import heapq
import json
import os
import uuid
import zlib

import apache_beam as beam
import tensorflow as tf
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    StandardOptions,
    WorkerOptions,
)

from etcmodel.preprocessing import local
from etcmodel.preprocessing.records import BadExampleError, Converted, to_tf_example

__all__ = ["pipeline_options", "run_pipeline"]

_NAMESPACE = "preprocessing"


def pipeline_options(job, files):
    """Beam's options for a `Job` over `files`.

    Raises:
        ValueError: names the first of the job's flags that Beam does not know.
    """
    known = PipelineOptions([]).get_all_options()
    for arg in job.beam_args:
        name = arg.lstrip("-").split("=")[0]
        if arg.startswith("-") and name not in known and name.removeprefix("no_") not in known:
            raise ValueError(f"Unknown flag {arg!r}: it is not one of Apache Beam's either.")
    options = PipelineOptions(list(job.beam_args))
    options.view_as(WorkerOptions).default_sdk_harness_log_level = "ERROR"
    workers = local.num_workers(job, files)
    direct = options.view_as(DirectOptions)
    direct.direct_num_workers = workers
    if direct.direct_running_mode in (None, "in_memory") and workers > 1:
        direct.direct_running_mode = "multi_processing"
    return options


def _runner(options):
    """Beam's local runner in this process's own Python, or the one that the options name.

    Beam's `DirectRunner` first tries Prism, a program that it downloads.
    """
    if options.view_as(StandardOptions).runner not in (None, "DirectRunner"):
        return None
    from apache_beam.portability.api import beam_provision_api_pb2
    from apache_beam.runners.portability.fn_api_runner import fn_runner
    from apache_beam.runners.portability.portable_runner import JobServiceHandle

    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    information = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    return fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(information))


def run_pipeline(job, files, folder, options):
    """Runs the pipeline of a `Job` over `files` to its end.

    Args:
        folder: str. Gets a file `shard-NNNNN` for every shard that has examples, files
            `done-NNNNN.json` that say what is in them, `lines-…` for the lines, and `error-…` where
            a worker gave up.
        options: of `pipeline_options`.

    Returns:
        (dict, dict): the statistics (counts, means of lengths, and `bad_examples`, a list of
        messages), and the number of records by number of the shard.

    Raises:
        BadExampleError: for malformed input.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # For the local workers.
    pipeline = beam.Pipeline(runner=_runner(options), options=options)
    _ = (
        pipeline
        | "Files" >> beam.Create(list(range(len(files))))
        | "SpreadFiles" >> beam.Reshuffle()
        | "Read" >> beam.ParDo(_ReadFile(job, files, folder))
        | "Spread" >> beam.GroupByKey()
        | "Convert" >> beam.ParDo(_WriteShard(job, files, folder))
    )
    result = pipeline.run()
    result.wait_until_finish()
    for name in sorted(tf.io.gfile.glob(os.path.join(folder, "error-*"))):
        with tf.io.gfile.GFile(name) as file:
            raise BadExampleError(file.read())
    counts = _counts(result.metrics().query(MetricsFilter().with_namespace(_NAMESPACE)))
    for name in job.line_files:
        _merge_lines(folder, name)
    done = _read_done(folder)
    # In the order of the input.
    bad = sorted(entry for shard in done for entry in shard["bad"])
    records_per_shard = {shard["number"]: shard["num_records"] for shard in done}
    return {**counts, "bad_examples": [message for *_, message in bad]}, records_per_shard


def _merge_lines(folder, name):
    """The lines of all shards, in the order of the input."""
    with contextlib.ExitStack() as stack:
        parts = [
            map(json.loads, stack.enter_context(tf.io.gfile.GFile(part)))
            for part in tf.io.gfile.glob(os.path.join(folder, f"part-?????-{name}"))
        ]
        file = stack.enter_context(tf.io.gfile.GFile(os.path.join(folder, f"lines-{name}"), "w"))
        file.write("")  # Else a file without lines would not be there.
        for *_, line in heapq.merge(*parts):
            file.write(f"{line}\n")


def _read_done(folder):
    done = []
    for name in tf.io.gfile.glob(os.path.join(folder, "done-*.json")):
        with tf.io.gfile.GFile(name) as file:
            done.append(json.load(file))
    return done


def _counts(metrics):
    counters = {counter.key.metric.name: counter.result for counter in metrics["counters"]}
    lengths = {
        f"mean_{length.key.metric.name}": round(length.result.mean, 2)
        for length in metrics["distributions"]
        if length.result.count
    }
    first = {"examples_read": 0, "examples_written": 0, "examples_bad": 0}
    return {**first, **dict(sorted(counters.items())), **dict(sorted(lengths.items()))}


def _give_up(folder, order, message):
    """Stops the workers. Raising would be retried, and logged with the whole of Beam's stack."""
    with tf.io.gfile.GFile(os.path.join(folder, f"error-{order}"), "w") as file:
        file.write(message)


class _ReadFile(beam.DoFn):
    """File number to (shard, (file number, number in the file, example as packed JSON))."""

    def __init__(self, job, files, folder):
        self._read = job.read
        self._num_shards = job.num_shards
        self._files = files
        self._folder = folder

    def process(self, file_number):
        try:
            for number, raw in enumerate(self._read(self._files[file_number])):
                shard = (file_number + number) % self._num_shards
                # Beam's local runner holds all of these: compressed, a big file fits in memory.
                yield shard, (file_number, number, zlib.compress(json.dumps(raw).encode(), 1))
        except ValueError as error:
            _give_up(self._folder, f"{file_number:05d}", str(error))


class _WriteShard(beam.DoFn):
    """Converts the raw examples of one shard and writes them to a file in the folder."""

    def __init__(self, job, files, folder):
        self._make_converter = job.make_converter
        self._strict = job.strict
        self._line_files = tuple(job.line_files)
        self._files = files
        self._folder = folder

    def setup(self):
        self._convert = self._make_converter()

    def process(self, element):
        if tf.io.gfile.glob(os.path.join(self._folder, "error-*")):
            return
        shard, raws = element
        unfinished = os.path.join(self._folder, f"unfinished-{uuid.uuid4().hex}")
        bad, num_records = [], 0
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(tf.io.TFRecordWriter(unfinished))
            parts = {
                name: stack.enter_context(
                    tf.io.gfile.GFile(os.path.join(self._folder, f"part-{shard:05d}-{name}"), "w")
                )
                for name in self._line_files
            }
            for file_number, number, raw in sorted(raws):
                converted = self._write(json.loads(zlib.decompress(raw)), writer)
                num_records += len(converted.features)
                for name, line in converted.lines.items():
                    parts[name].write(json.dumps([file_number, number, line]) + "\n")
                if message := converted.problem:
                    message = f"{self._files[file_number]}: element {number}: {message}"
                    if self._strict:
                        _give_up(self._folder, f"{file_number:05d}-{number:09d}", message)
                        return
                    bad.append((file_number, number, message))
        with tf.io.gfile.GFile(os.path.join(self._folder, f"done-{shard:05d}.json"), "w") as file:
            json.dump({"number": shard, "num_records": num_records, "bad": bad}, file)
        # A worker that failed half-way may be tried again: only a whole shard gets the name.
        shard_file = os.path.join(self._folder, f"shard-{shard:05d}")
        tf.io.gfile.rename(unfinished, shard_file, overwrite=True)

    def _write(self, raw, writer):
        """Converts and writes one example; returns its `Converted`."""
        Metrics.counter(_NAMESPACE, "examples_read").inc()
        try:
            converted = self._convert(raw)
        except ValueError as error:
            converted = Converted(features=[], problem=str(error))
        if converted.problem:
            Metrics.counter(_NAMESPACE, "examples_bad").inc()
        for features in converted.features:
            writer.write(to_tf_example(features).SerializeToString(deterministic=True))
        Metrics.counter(_NAMESPACE, "examples_written").inc(len(converted.features))
        for name, count in converted.counts.items():
            Metrics.counter(_NAMESPACE, name).inc(count)
        for name, length in converted.lengths.items():
            Metrics.distribution(_NAMESPACE, name).update(length)
        return converted
