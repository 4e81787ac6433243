"""Jobs over files of lines, and what they have written."""

import contextlib
import dataclasses
import json
import pathlib
import resource

import tensorflow as tf

from etcmodel import preprocessing, record_files
from tests.preprocessing import words

BEAM = ("--runner=DirectRunner",)


def make(folder, *files, out="out", **fields):
    """A `Job` over files of such lines, which writes to a folder below."""
    for number, lines in enumerate(files):
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    defaults = {
        "input_pattern": str(folder / "?.txt"),
        "output_prefix": str(folder / out / "train"),
        "num_shards": 2,
        "read": words.read,
        "make_converter": words.make_converter,
        "settings": {"task": "toy"},
        "statistics_file": str(folder / out / "stats.json"),
        "direct_num_workers": 1,
        "line_files": {name: str(folder / out / name) for name in ("kept", "left_out")},
    }
    return preprocessing.Job(**{**defaults, **fields})


@contextlib.contextmanager
def files_of_at_most(size):
    """The system refuses what a program writes beyond so many bytes of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder):
    """Path and content of each file."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def files(folder):
    """`contents`, but for the time that statistics tell."""
    content = contents(folder)
    for name in content:
        if name.endswith("stats.json"):
            content[name] = json.loads(content[name]) | {"seconds": 0}
    return content


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


def fields_of(job):
    """The job's fields that JSON can hold."""
    fields = {field.name: getattr(job, field.name) for field in dataclasses.fields(job)}
    return {name: value for name, value in fields.items() if not callable(value)}
