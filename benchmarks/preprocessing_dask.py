"""Preprocesses copies of real examples locally and on Dask workers, and compares the bytes.

  pip install 'apache-beam[dask]'
  python -m benchmarks.preprocessing_dask --source=hotpotqa.json \
      --vocab_file=vocab.txt --megabytes=200 --folder=/data

One of the two workers is killed when it has written some of the shards; Dask starts another one.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import tempfile
import time

from benchmarks import programs
from etcmodel import extras, options
from etcmodel.options import option
from etcmodel.tools.benchmarks import varied_copies

__all__ = ["DaskOptions", "compare", "digests"]

_NUM_FILES = 4  # Of the input: a worker reads a file as a whole.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DaskOptions(options.Options):
    """What is preprocessed."""

    dataset: str = option(
        "hotpotqa", "Data set whose preprocessing to measure.", choices=("hotpotqa", "openkp")
    )
    source: str = option("", "Raw file with a few examples.", is_file=True, is_needed=True)
    vocab_file: str = option("", "Lower-cased WordPiece vocabulary.", is_file=True, is_needed=True)
    megabytes: float = option(200.0, "Size of the raw files, in 10^6 bytes.", lower_bound=0)
    num_shards: int = option(16, "Number of TFRecord files.", lower_bound=1)
    folder: str = option(
        "", "Folder for temporary raw files and records. Defaults to the system's temporary folder."
    )
    seed: int = option(0, "Seed of the varied copies.")


def digests(folder):
    """dict of the name of each file below a folder to the digest of its content.

    The time in the statistics is ignored.
    """
    found = {}
    for path in sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file()):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if path.name.endswith("stats.json"):
            statistics = json.loads(path.read_text("utf-8"))
            digest = json.dumps({**statistics, "seconds": 0})
        found[path.relative_to(folder).as_posix()] = digest
    return found


def compare(chosen):
    """Preprocesses locally and on Dask workers.

    Args:
        chosen: `DaskOptions`.
    Returns:
        dict: "megabytes", float, of raw files; "equal", bool; "killed", int, of workers; "local"
        and "dask", float, seconds of the two programs.
    """
    with extras.needed("dev"):
        from benchmarks import dask_cluster

    with tempfile.TemporaryDirectory(dir=chosen.folder or None) as folder:
        raw, *outputs = (os.path.join(folder, name) for name in ("raw", "local", "dask"))
        num_bytes = chosen.megabytes * 1e6 / _NUM_FILES
        for number in range(_NUM_FILES):
            path = os.path.join(raw, f"{number}.json")
            seed = _NUM_FILES * chosen.seed + number
            varied_copies.write(chosen.dataset, chosen.source, path, num_bytes, seed)
        megabytes = sum(path.stat().st_size for path in pathlib.Path(raw).iterdir()) / 1e6
        seconds = {"local": _preprocess(chosen, raw, outputs[0], direct_num_workers=2)}
        with dask_cluster.local_cluster() as cluster:
            killer = dask_cluster.Killer(cluster)
            cluster.scheduler.add_plugin(killer)
            flags = (flag.lstrip("-").split("=") for flag in dask_cluster.beam_args(cluster))
            seconds["dask"] = _preprocess(chosen, raw, outputs[1], **dict(flags))
        found = [digests(output) for output in outputs]
        equal = found[0] == found[1] and len(found[0]) > chosen.num_shards
    return {"megabytes": megabytes, "equal": equal, "killed": len(killer.killed), **seconds}


def _preprocess(chosen, raw, output, **flags):
    """Seconds of the program."""
    start = time.monotonic()
    programs.run(
        f"etcmodel.tasks.{chosen.dataset}.preprocess",
        input_pattern=os.path.join(raw, "*"),
        output_prefix=os.path.join(output, "train"),
        num_shards=chosen.num_shards,
        vocab_file=chosen.vocab_file,
        **flags,
    )
    return time.monotonic() - start


def main(chosen):
    """Compares and prints the result; fails if the bytes differ or no worker was killed."""
    options.check_files(chosen)
    found = compare(chosen)
    print(json.dumps(found))
    if not found["equal"]:
        raise ValueError("The records of Dask's workers are not those of this machine.")
    if not found["killed"]:
        raise ValueError(
            "All shards were written before a worker could be killed: raise --num_shards or "
            "--megabytes."
        )


if __name__ == "__main__":
    options.run_program(DaskOptions, main)
