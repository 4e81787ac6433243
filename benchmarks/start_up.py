"""Measures the cost of the first call of ETC-base: tracing, and the rest until the result.

Each phase runs in a separate process. Given several source trees, they take turns, and the first is
compared with the others: on a busy machine, use the ratios of CPU seconds.

  python -m benchmarks.start_up --phases=forward,train,xla_train
  python -m benchmarks.start_up --rounds=3 --trees=/path/to/new,/path/to/old
"""

import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import time

from etcmodel.options import Options, option, run_program
from etcmodel.tools.benchmarks import worker

_PARTS = ("trace", "rest of first call", "second call")
_PHASES = ("forward", "train", "xla_forward", "xla_train")
_ARGUMENTS = {  # Of `worker.etc_functions`, by option.
    "length": "length",
    "global_length": "global_length",
    "num_hidden_layers": "layers",
    "hidden_size": "hidden",
    "dropout": "dropout",
    "checkpointing": "checkpointing",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class StartUpOptions(Options):
    """What is measured, and in which source trees."""

    phases: tuple = option(
        ("forward", "train"),
        "Phases to measure: 'forward', 'train', or either with the prefix 'xla_', compiled by XLA.",
        choices=_PHASES,
    )
    trees: tuple = option((), "Source trees to measure. None: the installed code.")
    rounds: int = option(1, "Number of measured processes per phase.", lower_bound=1)
    length: int = option(4096, "Length of the long input, in tokens.")
    global_length: int = option(230, "Length of the global input, in tokens.")
    num_hidden_layers: int = option(12, "Number of layers of the model.", lower_bound=1)
    hidden_size: int = option(768, "Hidden size of the model; a multiple of 64.", lower_bound=64)
    dropout: float = option(0.0, "Dropout rate in training steps.")
    checkpointing: bool = option(
        False, "Recompute activations in the backward pass (gradient checkpointing)."
    )
    in_process: bool = option(False, "Measure one phase in this process and print JSON.")

    def settings(self):
        """The arguments of `worker.etc_functions`."""
        return {argument: getattr(self, name) for name, argument in _ARGUMENTS.items()}


def measure(phase, settings):
    """Traces a phase and calls it twice.

    Args:
        phase: see `--phases`.
        settings: dict, the arguments of `worker.etc_functions`.
    Returns:
        dict of the name of a part to {"seconds", "cpu_seconds"}, "nodes" of the graph without and
        with those of its functions, and "peak_bytes" of this process.
    """
    import tensorflow as tf

    *xla, name = phase.split("_")
    function = worker.etc_functions(**settings)[name]
    function = tf.function(function, jit_compile=True if xla else None)
    result, concrete = {}, None

    def trace():
        nonlocal concrete
        concrete = function.get_concrete_function()

    for part, run in zip(_PARTS, (trace, *[lambda: worker.fetch(concrete())] * 2), strict=True):
        start, cpu_start = time.perf_counter(), _cpu_seconds()
        run()
        result[part] = {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": _cpu_seconds() - cpu_start,
        }
    graph = concrete.graph.as_graph_def()
    of_functions = sum(len(x.node_def) for x in graph.library.function)
    result["nodes"] = [len(graph.node), len(graph.node) + of_functions]
    result["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return result


def _cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _measure_in_process(phase, tree, options):
    arguments = [f"--{name}={getattr(options, name)}" for name in _ARGUMENTS]
    environment = dict(os.environ)
    if tree:
        environment["PYTHONPATH"] = os.path.abspath(tree)
    command = [sys.executable, os.path.abspath(__file__), "--in_process", f"--phases={phase}"]
    done = subprocess.run(
        [*command, *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _row(phase, tree, figures):
    """A line of the table: medians over the rounds."""
    cells = [phase, tree or "installed"]
    for part in _PARTS:
        seconds = statistics.median(x[part]["seconds"] for x in figures)
        cpu_seconds = statistics.median(x[part]["cpu_seconds"] for x in figures)
        cells.append(f"{seconds:.1f} ({cpu_seconds:.1f})")
    cells.append(", ".join(map(str, figures[0]["nodes"])))
    peak = statistics.median(x["peak_bytes"] for x in figures)
    return [*cells, f"{peak / 1e9:.2f}"]


def main(options):
    """Measures what `StartUpOptions` ask for, and prints a table."""
    if options.in_process:
        print(json.dumps(measure(options.phases[0], options.settings())))
        return
    trees = options.trees or (None,)
    columns = [f"{part}, s (processor)" for part in _PARTS]
    columns = ["phase", "tree", *columns, "nodes, with functions", "peak GB"]
    _print_row(columns)
    _print_row(["---"] * len(columns))
    for phase in options.phases:
        figures = {tree: [] for tree in trees}
        for _ in range(options.rounds):
            for tree in trees:
                figure = _measure_in_process(phase, tree, options)
                # A run that is ended early has shown what it knew.
                print(json.dumps({"phase": phase, "tree": tree, **figure}), file=sys.stderr)
                figures[tree].append(figure)
        for tree in trees:
            _print_row(_row(phase, tree, figures[tree]))


def _print_row(cells):
    print("|", *(f"{cell} |" for cell in cells), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    run_program(StartUpOptions, main)
