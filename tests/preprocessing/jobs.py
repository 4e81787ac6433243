"""What a job has written."""

import dataclasses
import json
import pathlib

import tensorflow as tf

from etcmodel import record_files

BEAM = ("--runner=DirectRunner",)


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
