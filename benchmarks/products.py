"""Measures products of matrices in each library, as the processor is or with AVX2 alone.

TensorFlow with oneDNN and without, NumPy, and PyTorch take turns; products are of 2,048 rows and
columns. With `--instructions=avx2` the libraries are told to use no later instructions, as on
processors that have none. Prints the processor and a table.

  python -m benchmarks.products --torch_python=/path/to/torch/bin/python
"""

import dataclasses
import os
import statistics
import sys

from etcmodel import onednn, posix_only
from etcmodel.options import Options, check_files, option, run_program
from etcmodel.tools.benchmarks import turns
from etcmodel.tools.benchmarks.worker import MATMUL, matmul_seconds_to_speed

__all__ = ["RESTRICTED", "ProductsOptions"]

# oneDNN (also that of PyTorch), NumPy's OpenBLAS, and PyTorch's own loops and MKL.
RESTRICTED = {
    "avx2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    }
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProductsOptions(Options):
    """Which libraries, with which instructions."""

    torch_python: str | None = option(
        None, "Python interpreter with torch. None: PyTorch is not measured.", is_file=True
    )
    instructions: str = option(
        "all", "'all' that the processor has, or 'avx2'.", choices=("all", *RESTRICTED)
    )
    dtypes: tuple = option(
        ("float32", "bfloat16"),
        "What the matrices are of. With AVX2 alone, bfloat16 takes minutes in PyTorch.",
        choices=("float32", "bfloat16"),
    )
    rounds: int = option(5, "Number of measured runs of each library.", lower_bound=1)


def make_workers(options):
    """list of `turns.Worker`."""
    module = [sys.executable, "-m", "etcmodel.tools.benchmarks.worker", "matmul", "{}"]
    ways = (("TensorFlow, oneDNN", "1"), ("TensorFlow without oneDNN", "0"))
    workers = [
        turns.Worker(name, ["env", f"{onednn.VARIABLE}={way}", *module], ("float32", "bfloat16"))
        for name, way in ways
    ]
    workers.append(turns.Worker("NumPy", module, ("numpy",)))
    if options.torch_python:
        python, phases = options.torch_python, ("float32", "bfloat16")
        workers.append(turns.torch_worker("PyTorch", python, "products", phases, **MATMUL))
    return workers


def main(options):
    """Measures what `ProductsOptions` ask for."""
    check_files(options)
    os.environ.update(RESTRICTED.get(options.instructions, {}))
    workers = make_workers(options)
    rows = []
    of_phase = {"float32": "float32", "numpy": "float32", "bfloat16": "bfloat16"}
    for phase, dtype in of_phase.items():
        able = [x for x in workers if phase in x.phases and dtype in options.dtypes]
        able, times, _ = turns.take_turns(able, phase, options.rounds)
        for worker in able:
            speeds = [matmul_seconds_to_speed(x) / 1e9 for x in times[worker.name]]
            told = f"{statistics.median(speeds):.0f} ({min(speeds):.0f} to {max(speeds):.0f})"
            rows.append([worker.name, dtype, told])
    for worker in workers:
        worker.close()
    known = ", ".join(onednn.instructions()) or "unknown"
    print(f"{posix_only.usable_cores()} cores; {known}; used: {options.instructions}\n")
    for row in (["library", "dtype", "GFLOP/s"], ["---"] * 3, *rows):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    run_program(ProductsOptions, main)
