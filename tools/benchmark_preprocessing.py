"""Measures how fast raw examples become records, on generated data, in one process.

    python -m etcmodel.tools.benchmark_preprocessing --dataset=hotpotqa

Reading, converting and serializing are measured, without Beam and without writing: what a core of
a worker does. Prints a table, and the same as JSON in the last line.
"""

import dataclasses
import importlib
import json
import os
import tempfile
import time

from etcmodel import options, preprocessing
from etcmodel.options import option
from etcmodel.preprocessing import program

from . import make_demo_data

__all__ = ["Measurement", "measure", "report", "table"]

_NUM_WARM_UP = 5  # Examples converted before the clock starts: caches fill, tables are built.
_ALL = "all"
_FOLDERS = {"triviaqa": {"evidence_dir": "evidence"}}  # Options that name what is beside examples.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one process did.

    Attributes:
        dataset: str.
        num_examples, num_records: int. Raw examples read, TFRecords made of them.
        megabytes: float. Raw data, in 10^6 bytes.
        seconds: float. Wall time.
    """

    dataset: str
    num_examples: int
    num_records: int
    megabytes: float
    seconds: float

    @property
    def examples_per_second(self):
        return self.num_examples / self.seconds

    @property
    def megabytes_per_second(self):
        return self.megabytes / self.seconds

    def to_dict(self):
        """All figures by name, rates too: dict that JSON can hold."""
        rates = {name: getattr(self, name) for name in _RATES}
        return {**dataclasses.asdict(self), **rates}


_RATES = ("examples_per_second", "megabytes_per_second")


def measure(dataset, *, num_examples, seed=0):
    """Converts generated training examples with the task's default options.

    Args:
        dataset: str. A key of `make_demo_data.GENERATORS`.
        num_examples: int.
        seed: int. Decides the examples.
    Returns:
        `Measurement`.
    """
    task = make_demo_data.task_of(dataset)
    task_program = importlib.import_module(f"etcmodel.tasks.{task}.preprocess")
    with tempfile.TemporaryDirectory() as folder:
        paths = make_demo_data.make_demo_data(
            dataset=dataset, output_dir=folder, num_train=num_examples, num_dev=1, seed=seed
        )
        folders = _FOLDERS.get(dataset, {}).items()
        set_options = task_program.PreprocessOptions(
            **{field: os.path.join(folder, name) for field, name in folders},
            input_pattern=paths["train"],
            output_prefix=os.path.join(folder, "records"),
            vocab_file=paths["vocab"],
        )
        (set_options,) = set_options.sets()
        job = program.make_job(set_options, *task_program.load_parts())
        convert = job.make_converter()
        _convert_file(job, convert, paths["train"], limit=_NUM_WARM_UP)
        start = time.perf_counter()
        num_read, num_records = _convert_file(job, convert, paths["train"])
        return Measurement(
            dataset=dataset,
            num_examples=num_read,
            num_records=num_records,
            megabytes=os.path.getsize(paths["train"]) / 1e6,
            seconds=time.perf_counter() - start,
        )


def _convert_file(job, convert, path, limit=None):
    """(number of raw examples, number of records) of at most `limit` examples of the file."""
    num_read = num_records = 0
    for raw in job.read(path):
        if num_read == limit:
            break
        num_read += 1
        for features in convert(raw).features:
            preprocessing.to_tf_example(features).SerializeToString(deterministic=True)
            num_records += 1
    return num_read, num_records


def table(measurements):
    """The measurements as lines of text, one each below a line of names."""
    names = ["dataset", "examples", "records", "MB", "s", "examples/s", "MB/s"]
    rows = [
        [
            one.dataset,
            str(one.num_examples),
            str(one.num_records),
            f"{one.megabytes:.2f}",
            f"{one.seconds:.2f}",
            f"{one.examples_per_second:.1f}",
            f"{one.megabytes_per_second:.2f}",
        ]
        for one in measurements
    ]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in [names, *rows]
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkOptions(options.Options):
    """What to measure."""

    dataset: str = option(
        _ALL,
        "Whose preprocessing to measure.",
        choices=(_ALL, *sorted(make_demo_data.GENERATORS)),
    )
    num_examples: int = option(500, "Examples of each data set.", lower_bound=1)
    seed: int = option(0, "Another seed gives other examples.")


def report(datasets, *, num_examples, seed=0):
    """Measures the datasets' preprocessing and prints the table and the JSON."""
    measurements = [measure(dataset, num_examples=num_examples, seed=seed) for dataset in datasets]
    print(table(measurements))
    print(json.dumps([one.to_dict() for one in measurements]))


def main(chosen):
    """Measures what `BenchmarkOptions` ask for."""
    is_all = chosen.dataset == _ALL
    datasets = sorted(make_demo_data.GENERATORS) if is_all else [chosen.dataset]
    report(datasets, num_examples=chosen.num_examples, seed=chosen.seed)


if __name__ == "__main__":
    options.run_program(BenchmarkOptions, main)
