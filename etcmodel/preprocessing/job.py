"""Converts raw files to sharded TFRecords, with statistics and settings.

It runs on this machine (`local`) or, with flags of Apache Beam, as a Beam pipeline; the shards are
the same. Everything is written below a temporary folder and moved at the end.
"""

import contextlib
import dataclasses
import functools
import logging
import os
import time

import tensorflow as tf

from etcmodel import atomic_files, extras, opener, record_files
from etcmodel.preprocessing import local
from etcmodel.preprocessing.records import BadExampleError

_MAX_BAD_EXAMPLES_LISTED = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A conversion: its input, its converter and its output.

    Attributes:
        input_pattern: str or list of str. See `input_files`.
        output_prefix: str. The shards are `<prefix>-00000-of-000NN.tfrecord` and so on.
        num_shards: int. Number of files; all are written, even if some are empty.
        read: function that takes a path and yields raw examples as JSON-like dicts.
        make_converter: function that returns a function from a raw example to a `Converted`. Called
            once per worker; the returned function may raise a ValueError for a malformed example.
        settings: dict. Written to `<prefix>.config.json`, for the programs that read the shards.
        statistics_file: str. JSON file for the statistics.
        strict: bool. Fail at a malformed example instead of counting and listing it.
        direct_num_workers: int. Number of local processes; 0 for one per core.
        beam_args: list of str. Beam's own flags, such as `--runner=DataflowRunner`; if there are
            any, Beam runs the job.
        deals_records: bool. On this machine, distribute single records over the shards in turn,
            instead of examples with all of their records.
        line_files: dict from name to the path of a file for the lines (`Converted.lines`) of that
            name, in input order. Lines and statistics beside the shards are replaced together with
            them, those elsewhere after them.
        advice: str. What to try if no example is left; the error ends with it.

    >>> from etcmodel import preprocessing
    >>> files = {"input_pattern": "*.csv", "output_prefix": "train", "statistics_file": "all.json"}
    >>> convert = lambda line: preprocessing.Converted([{"length": [len(line)]}])
    >>> work = {"read": open, "make_converter": lambda: convert, "settings": {}, "num_shards": 1}
    >>> job = preprocessing.Job(**files, **work, direct_num_workers=1)
    >>> preprocessing.run(job)["examples_written"]
    5
    """

    input_pattern: str | list
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
    line_files: dict = dataclasses.field(default_factory=dict)
    advice: str = ""


def run(job):
    """Runs a `Job`.

    Returns:
        dict. The statistics, as in the file.

    Raises:
        OSError: in one line, if something cannot be read or written; detected before the work if
            possible. An older set of records then stays unchanged.
        ValueError: for malformed flags, missing input files, malformed input, or if no example is
            left.

    >>> from etcmodel import preprocessing
    >>> files = {"input_pattern": "*.csv", "output_prefix": "train", "statistics_file": "all.json"}
    >>> convert = lambda line: preprocessing.Converted([{"length": [len(line)]}])
    >>> work = {"read": open, "make_converter": lambda: convert, "settings": {}, "num_shards": 1}
    >>> statistics = preprocessing.run(preprocessing.Job(**files, **work))
    >>> statistics["examples_written"], tf.io.gfile.glob("train*.tfrecord")
    (5, ['./train-00000-of-00001.tfrecord'])
    """
    if job.num_shards < 1:
        raise ValueError(f"`num_shards` must be at least 1. Received: {job.num_shards}")
    try:
        files = input_files(job.input_pattern)
        run_examples = _beam_runner(job, files) if job.beam_args else local.run_local
        return _run(job, functools.partial(run_examples, job, files))
    except tf.errors.OpError as error:
        raise OSError(error.message) from error


def input_files(patterns):
    """Sorted paths of raw files, each once.

    Hidden files (`.ipynb_checkpoints`, `._notes.txt`) must be named explicitly: wildcards skip
    them, with a log message.

    Args:
        patterns: str or list of str. Files or patterns.
    Raises:
        ValueError: naming a pattern that matches no file.

    >>> from etcmodel import preprocessing
    >>> preprocessing.input_files(["*.csv", "vocab.txt"])
    ['./reviews.csv', 'vocab.txt']
    """
    files = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        # A name may contain brackets, which are special in patterns.
        found = [pattern] if tf.io.gfile.exists(pattern) else tf.io.gfile.glob(pattern)
        shown = opener.shown(found, pattern)
        if len(shown) < len(found):
            logging.warning("%s: %d hidden files left out", pattern, len(found) - len(shown))
        if not shown:
            raise ValueError(f"No input file matches {pattern!r}.")
        files.update(shown)
    return sorted(files)


def _run(job, run_examples):
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        with _naming(job.output_prefix):
            folder = stack.enter_context(atomic_files.scratch_folder(job.output_prefix))
        for path in (job.statistics_file, *job.line_files.values()):
            with _naming(path):
                atomic_files.check_writable(path)  # Fail now rather than after hours.
        statistics, records_per_shard = run_examples(folder)
        bad_examples = statistics.pop("bad_examples")[:_MAX_BAD_EXAMPLES_LISTED]
        statistics["seconds"] = round(time.monotonic() - start, 1)
        statistics["bad_examples"] = bad_examples  # Last, as it is the longest.
        _check_written(job, statistics)
        _move_into_place(job, folder, records_per_shard, statistics)
    return statistics


@contextlib.contextmanager
def _naming(path):
    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        raise OSError(f"Cannot write to {path!r}: {getattr(error, 'message', error)}") from error


def _beam_runner(job, files):
    """Checks the job's flags and calls `pipeline.run_pipeline`."""
    with extras.needed("beam"):
        from etcmodel.preprocessing import beam_flags, pipeline  # Beam takes seconds to import.

    flags = beam_flags.parse(
        job.beam_args,
        job.direct_num_workers,
        default_num_workers=local.num_workers(job, files),
    )
    return functools.partial(pipeline.run_pipeline, flags=flags)


def _check_written(job, statistics):
    if not statistics["examples_written"]:
        raise BadExampleError(
            f"{job.input_pattern}: no example is left to write: {_why_none(statistics, job.advice)}"
        )


def _why_none(statistics, advice):
    """A summary in words, from the counts, with advice if examples were read and left out."""
    if not statistics["examples_read"]:
        return "the input holds none."
    if bad := statistics["bad_examples"]:
        return f"{statistics['examples_bad']} are malformed, the first: {bad[0]}"
    counts = {
        name.replace("_", " "): value
        for name, value in statistics.items()
        if isinstance(value, int) and value
    }
    summary = ", ".join(f"{name}: {value}" for name, value in counts.items()) + "."
    return f"{summary} {advice}".rstrip()


def _move_into_place(job, folder, records_per_shard, statistics):
    """Moves shards, statistics and settings to their final names.

    Everything is written before anything is moved. Old settings are removed first and new ones
    moved last, so that settings always match all existing shards. Lines are moved before their
    shards.
    """
    settings_file = f"{job.output_prefix}.config.json"
    names = record_files.shard_names(job.output_prefix, job.num_shards)
    sources = [os.path.join(folder, f"shard-{shard:05d}") for shard in range(job.num_shards)]
    for source in sources:
        if not tf.io.gfile.exists(source):
            tf.io.TFRecordWriter(source).close()
    manifest = {
        "records_per_shard": [records_per_shard.get(shard, 0) for shard in range(job.num_shards)],
        "bytes_per_shard": [tf.io.gfile.stat(source).length for source in sources],
    }
    moves = [(os.path.join(folder, f"lines-{name}"), path) for name, path in job.line_files.items()]
    moves += zip(sources, names, strict=True)
    moves += [
        (os.path.join(folder, "statistics"), job.statistics_file),
        (os.path.join(folder, "settings"), settings_file),
    ]
    atomic_files.write_json(moves[-2][0], statistics)
    atomic_files.write_json(moves[-1][0], {**job.settings, **manifest})
    with contextlib.ExitStack() as stack:
        for move in list(moves):
            if not atomic_files.is_beside(move[1], folder):  # It may be on another disk.
                stack.enter_context(atomic_files.prepared_copy(*move))
                moves.remove(move)
        atomic_files.replace_files(
            moves, folder, lambda: record_files.written_shards(job.output_prefix)
        )
