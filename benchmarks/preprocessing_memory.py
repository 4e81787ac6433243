"""Measures the memory of a preprocessing, by how much of a large file it has read (Linux).

Writes a raw file of varied copies of real examples, runs the data set's program on it as a user
would, and samples the memory of its processes. The files are removed at the end. Flags of the data
set's program may follow `--`.

  python -m benchmarks.preprocessing_memory --dataset=nq --source=nq.jsonl \
      --vocab_file=vocab.txt --megabytes=1000 --folder=/data -- --include_unknown_rate=0.02
"""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks import programs
from etcmodel import options
from etcmodel.options import option
from etcmodel.tools.benchmarks import varied_copies

__all__ = ["MemoryOptions", "follow", "measure", "peaks", "sample", "table"]


def _processes(pid):
    """Ids of a process and of all below it."""
    found = [pid]
    for process in found:
        with contextlib.suppress(OSError):  # It may have ended meanwhile.
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
    return found


def _memory(pid):
    """Bytes of a process; shared memory is divided between its users."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(1024 * int(line.split()[1]) for line in file if line.startswith("Pss:"))


def _position(pid, path):
    """Where a process reads an open file, in bytes; 0 if it has not opened it."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.path.samefile(f"/proc/{pid}/fd/{number}", path):
                with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
                    return int(file.readline().split()[1])
    return 0


def sample(pid, path):
    """How far a process, or one that it started, has read a file, and the memory of all of them.

    Args:
        pid: int.
        path: str.
    Returns:
        (position, memory), int, in bytes; 0 for a file that none of them has open, and for the
        memory of processes that have ended.
    """
    memory = position = 0
    for process in _processes(pid):
        with contextlib.suppress(OSError):
            memory += _memory(process)
            position = max(position, _position(process, path))
    return position, memory


def follow(process, path, seconds=0.2):
    """Watches a process until it ends.

    Args:
        process: `subprocess.Popen`.
        path: str. See `sample`.
        seconds: float. Time between two samples.
    Returns:
        list of (position, memory), as of `sample`; positions do not fall.
    """
    samples, furthest = [], 0
    while process.poll() is None:
        position, memory = sample(process.pid, path)
        furthest = max(furthest, position)
        if memory:
            samples.append((furthest, memory))
        time.sleep(seconds)
    return samples


def peaks(samples, size, shares=(0.1, 0.5, 1.0)):
    """The peak memory until given fractions of a file are read.

    Args:
        samples: of `follow`.
        size: int. Of the file, in bytes.
        shares: tuple of float.
    Returns:
        list of int, in bytes; 0 where there is no sample by then.
    """
    return [
        max((memory for position, memory in samples if position <= share * size), default=0)
        for share in shares
    ]


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
            samples = follow(process, path)
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
        peaks=peaks(samples, size),
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
