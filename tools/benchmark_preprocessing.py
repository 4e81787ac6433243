"""Measures how fast raw examples are converted to records, in one process.

    python -m etcmodel.tools.benchmark_preprocessing --dataset=hotpotqa

measures generated data, and

    python -m etcmodel.tools.benchmark_preprocessing --vocab_file=vocab.txt \\
        --hotpotqa=hotpotqa.json --nq=nq.jsonl --openkp=openkp.jsonl --wikihop=wikihop.json

measures raw files, in turns with the package `tokenizers`, which only tokenizes the same texts.
Small files are extended with varied copies of their examples.

The measured work is that of one worker core: reading, converting and serializing, without Beam and
without writing. Prints a table, and the same as JSON in the last line.
"""

import dataclasses
import json
import os
import tempfile
import time

from etcmodel import options
from etcmodel.options import option
from etcmodel.tools.benchmarks import tokenizing

from . import make_demo_data

__all__ = ["Measurement", "measure", "report", "table"]

_NUM_WARM_UP = 5  # Examples converted before the clock starts: caches fill, tables are built.
_ALL = "all"
_FOLDERS = {"triviaqa": {"evidence_dir": "evidence"}}  # Options that name further files.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measurement of one process.

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
        """All results by name, including rates: JSON-serializable dict."""
        rates = {name: getattr(self, name) for name in _RATES}
        return {**dataclasses.asdict(self), **rates}


_RATES = ("examples_per_second", "megabytes_per_second")


def measure(dataset, *, num_examples, seed=0):
    """Converts generated training examples with the task's default options.

    Args:
        dataset: str. A key of `make_demo_data.GENERATORS`.
        num_examples: int.
        seed: int. Seed of the examples.
    Returns:
        `Measurement`.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = make_demo_data.make_demo_data(
            dataset=dataset, output_dir=folder, num_train=num_examples, num_dev=1, seed=seed
        )
        folders = _FOLDERS.get(dataset, {}).items()
        job = tokenizing.make_job(
            make_demo_data.task_of(dataset),
            paths["train"],
            paths["vocab"],
            folder,
            **{field: os.path.join(folder, name) for field, name in folders},
        )
        convert = job.make_converter()
        tokenizing.convert_file(job, convert, paths["train"], limit=_NUM_WARM_UP)
        start = time.perf_counter()
        num_read, num_records = tokenizing.convert_file(job, convert, paths["train"])
        return Measurement(
            dataset=dataset,
            num_examples=num_read,
            num_records=num_records,
            megabytes=os.path.getsize(paths["train"]) / 1e6,
            seconds=time.perf_counter() - start,
        )


def table(measurements):
    """The measurements as a text table, one line each below a header."""
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
    """The data sets and files to measure."""

    dataset: str = option(
        _ALL,
        "Data set whose preprocessing to measure.",
        choices=(_ALL, *sorted(make_demo_data.GENERATORS)),
    )
    num_examples: int = option(500, "Number of generated examples of each data set.", lower_bound=1)
    seed: int = option(0, "Seed of the generated examples.")
    hotpotqa: str = option(
        "", "Raw HotpotQA file to measure instead of generated data.", is_file=True
    )
    nq: str = option(
        "",
        "Raw Natural Questions file (simplified layout) to measure instead of generated data.",
        is_file=True,
    )
    openkp: str = option("", "Raw OpenKP file to measure instead of generated data.", is_file=True)
    wikihop: str = option(
        "", "Raw WikiHop file to measure instead of generated data.", is_file=True
    )
    vocab_file: str = option("", "For raw files: lower-cased WordPiece vocabulary.", is_file=True)
    megabytes: float = option(
        2.0,
        "For raw files: size in 10^6 bytes to which smaller files are extended with varied copies.",
        lower_bound=0,
    )
    rounds: int = option(5, "For raw files: number of rounds after the first.", lower_bound=1)

    def __post_init__(self):
        super().__post_init__()
        if self.raw_files() and not self.vocab_file:
            raise ValueError("--vocab_file must be given with raw files.")

    def raw_files(self):
        """dict from a data set to its given raw file."""
        return {name: path for name in tokenizing.TEXTS if (path := getattr(self, name))}


def report(datasets, *, num_examples, seed=0):
    """Measures the datasets' preprocessing and prints the table and the JSON."""
    measurements = [measure(dataset, num_examples=num_examples, seed=seed) for dataset in datasets]
    print(table(measurements))
    print(json.dumps([one.to_dict() for one in measurements]))


def report_shares(chosen):
    """Measures the raw files of `BenchmarkOptions` and prints the table and the JSON."""
    options.check_files(chosen)
    with tempfile.TemporaryDirectory() as folder:
        shares = [
            tokenizing.measure(
                dataset,
                path,
                chosen.vocab_file,
                folder,
                megabytes=chosen.megabytes,
                rounds=chosen.rounds,
                seed=chosen.seed,
            )
            for dataset, path in chosen.raw_files().items()
        ]
    print(tokenizing.table(shares))
    print(json.dumps([dataclasses.asdict(share) for share in shares]))


def main(chosen):
    """Runs the benchmark of `BenchmarkOptions`."""
    if chosen.raw_files():
        report_shares(chosen)
        return
    is_all = chosen.dataset == _ALL
    datasets = sorted(make_demo_data.GENERATORS) if is_all else [chosen.dataset]
    report(datasets, num_examples=chosen.num_examples, seed=chosen.seed)


if __name__ == "__main__":
    options.run_program(BenchmarkOptions, main)
