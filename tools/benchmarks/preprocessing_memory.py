"""Measures the memory of a preprocessing, by how much of a large file it has read (Linux).

Writes a raw file of varied copies of real examples, runs the data set's program on it as a user
would, and samples the memory of its processes. The files are removed at the end. Flags of the data
set's program may follow `--`.

  python -m etcmodel.tools.benchmarks.preprocessing_memory --dataset=nq --source=nq.jsonl \
      --vocab_file=vocab.txt --megabytes=1000 --folder=/data -- --include_unknown_rate=0.02
"""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time

from etcmodel import options
from etcmodel.options import option
from etcmodel.tools.benchmarks import process_memory, programs, varied_copies

__all__ = ["MemoryOptions", "measure", "table"]

_OUTPUTS = {"wikihop": "output_dir"}  # Others have a prefix.


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryOptions(options.Options):
    """What is preprocessed."""

    dataset: str = option(
        "nq", "Data set whose preprocessing to measure.", choices=tuple(varied_copies.MAKERS)
    )
    source: str = option("", "Raw file with a few examples.", is_file=True, is_needed=True)
    vocab_file: str = option("", "Lower-cased WordPiece vocabulary.", is_file=True, is_needed=True)
    megabytes: float = option(100.0, "Size of the raw file, in 10^6 bytes.", lower_bound=0)
    folder: str = option(
        "", "Folder for temporary raw files and records. Defaults to the system's temporary folder."
    )
    direct_num_workers: int = option(1, "Number of converting processes.", lower_bound=1)
    seed: int = option(0, "Seed of the varied copies.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """The result of a measurement.

    Attributes:
        dataset: str.
        megabytes: float. Of the raw file.
        num_examples, num_records: int.
        seconds: float. Wall time of the program.
        peaks: list of int. Peak memory in bytes until 10 %, 50 % and all of the file was read.
    """

    dataset: str
    megabytes: float
    num_examples: int
    num_records: int
    seconds: float
    peaks: list


def measure(chosen, flags=()):
    """The `Measurement` that `MemoryOptions` ask for.

    Args:
        chosen: `MemoryOptions`.
        flags: sequence of str. Further flags of the data set's program.
    Raises:
        ChildProcessError: if the program fails; it prints the reason itself.
    """
    with tempfile.TemporaryDirectory(dir=chosen.folder or None) as folder:
        path = os.path.join(folder, "raw.json")
        num_bytes = chosen.megabytes * 1e6
        varied_copies.write(chosen.dataset, chosen.source, path, num_bytes, chosen.seed)
        output = _OUTPUTS.get(chosen.dataset, "output_prefix")
        command = [
            *(sys.executable, "-m", f"etcmodel.tasks.{chosen.dataset}.preprocess"),
            f"--input_pattern={path}",
            f"--{output}={os.path.join(folder, 'records', 'train')}",
            f"--vocab_file={chosen.vocab_file}",
            f"--direct_num_workers={chosen.direct_num_workers}",
            *flags,
        ]
        start = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            samples = process_memory.follow(process, path)
        if process.returncode:
            raise programs.failure(command, process.returncode)
        seconds = time.monotonic() - start
        statistics = _statistics(folder)
        size = os.path.getsize(path)
    return Measurement(
        dataset=chosen.dataset,
        megabytes=size / 1e6,
        num_examples=statistics["examples_read"],
        num_records=statistics["examples_written"],
        seconds=seconds,
        peaks=process_memory.peaks(samples, size),
    )


def _statistics(folder):
    (path,) = (
        os.path.join(top, name)
        for top, _, names in os.walk(folder)
        for name in names
        if name.endswith(".stats.json")
    )
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def table(found):
    """A `Measurement` as a Markdown table."""
    peaks = " | ".join(f"{peak / 1e6:.0f}" for peak in found.peaks)
    return (
        "| data set | raw MB | examples | records | s | MB/s | MB of memory until 10 % | 50 % "
        "| 100 % |\n|---|---|---|---|---|---|---|---|---|\n"
        f"| {found.dataset} | {found.megabytes:.0f} | {found.num_examples} | {found.num_records} "
        f"| {found.seconds:.0f} | {found.megabytes / found.seconds:.2f} | {peaks} |"
    )


def main(chosen, flags):
    """Measures, and prints the table and the JSON."""
    options.check_files(chosen)
    found = measure(chosen, flags)
    print(table(found))
    print(json.dumps(dataclasses.asdict(found)))


if __name__ == "__main__":
    options.run_program(MemoryOptions, main, has_others_flags=True)
