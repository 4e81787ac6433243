"""Measures the encoder on this machine: speed and memory against length, beside its peers.

Prints a table and writes results.json and results.png. All figures of one length come from models
that take turns in one run, so that their ratios hold on a noisy machine; times are medians.

  python -m etcmodel.tools.benchmark --output_dir=/tmp/benchmark --quick
"""

import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys

from absl import app, flags

from . import benchmark_report, benchmark_worker

_OUTPUT_DIR = flags.DEFINE_string("output_dir", "benchmark", "Where results.json and .png go.")
_LENGTHS = flags.DEFINE_list(
    "lengths", ["512", "1024", "2048", "4096", "8192", "16384"], "Long lengths, in tokens."
)
_GLOBAL_LENGTH = flags.DEFINE_integer(
    "global_length", None, "Global length, in tokens. None: a 16th of the long one, at most 512."
)
_ROUNDS = flags.DEFINE_integer("rounds", 3, "Measured runs of each model.", lower_bound=1)
_BERT_MAX = flags.DEFINE_integer(
    "bert_max_length", 4096, "Longest input, in tokens, of models with full attention."
)
_BERT_TRAIN_MAX = flags.DEFINE_integer(
    "bert_train_max_length", 2048, "Longest input, in tokens, of a training step of BERT."
)
_TRAIN_MAX = flags.DEFINE_integer(
    "train_max_length", 16384, "Longest input, in tokens, of a training step."
)
_DROPOUT = flags.DEFINE_float("dropout", 0.0, "Dropout in training steps of ETC and BERT.")
_TORCH = flags.DEFINE_string(
    "torch_python",
    None,
    "Python interpreter that has torch and transformers: measures Hugging Face's models too.",
)
_QUICK = flags.DEFINE_bool(
    "quick",
    False,
    "ETC and BERT in float32 at lengths 512 and 1024, one round, training at 512: under two "
    "minutes on two cores, without --torch_python.",
)
_MODELS = flags.DEFINE_list(
    "models",
    ["etc", "etc_bfloat16", "etc_checkpointed", "bert"],
    "TensorFlow models to measure.",
)

_HERE = pathlib.Path(__file__).resolve().parent


class Worker:
    """A model in a process of its own.

    Args:
        name: of the model, as reported.
        command: list of str. Starts the process.
        phases: what may be asked of it.
    """

    def __init__(self, name, command, phases=("forward", "train")):
        self.name = name
        self.phases = phases
        self._command = command
        self._process = None

    def measure(self, phase):
        """(seconds, peak bytes) of one run.

        Raises:
            RuntimeError: if the process died, of too little memory for example.
        """
        if self._process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._process = subprocess.Popen(self._command, text=True, **pipes)
        try:
            self._process.stdin.write(json.dumps(phase) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            raise RuntimeError(f"{self.name} died during {phase}; its messages are above") from None
        return answer["seconds"], answer["peak_bytes"]

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def tensorflow_worker(name, kind, phases=("forward", "train"), **settings):
    command = [sys.executable, "-m", "etcmodel.tools.benchmark_worker", kind, json.dumps(settings)]
    return Worker(name, command, phases)


def make_workers(length, global_length, models, train_max_length):
    """The models to compare at a length."""
    trains = length <= train_max_length
    both = ("forward", "train") if trains else ("forward",)
    sizes = {"length": length, "global_length": global_length, "dropout": _DROPOUT.value}
    workers = []
    if "etc" in models:
        workers.append(tensorflow_worker("etc", "etc", both, checkpointing=False, **sizes))
    if "etc_bfloat16" in models:
        settings = {**sizes, "checkpointing": False, "bfloat16": True}
        workers.append(tensorflow_worker("etc bfloat16", "etc", ("forward",), **settings))
    if "etc_checkpointed" in models and trains:
        settings = {**sizes, "checkpointing": True}
        workers.append(tensorflow_worker("etc checkpointed", "etc", ("train",), **settings))
    if "bert" in models and length <= _BERT_MAX.value:
        settings = {"length": length, "dropout": _DROPOUT.value}
        phases = both if length <= _BERT_TRAIN_MAX.value else ("forward",)
        workers.append(tensorflow_worker("bert", "bert", phases, **settings))
    return workers + make_torch_workers(length)


def make_torch_workers(length):
    """Hugging Face's models, if asked for."""
    if not _TORCH.value:
        return []
    kinds = ["longformer", "bigbird"] + ["bert"] * (length <= _BERT_MAX.value)
    script = str(_HERE / "benchmark_torch.py")
    threads = str(len(os.sched_getaffinity(0)))
    return [
        Worker(f"hf {kind}", [_TORCH.value, script, kind, str(length), threads], ("forward",))
        for kind in kinds
    ]


def measure_length(length, global_length, models, matmul, rounds, train_max_length):
    """Figures of all models at one length: list of dicts. A model that dies is left out."""
    workers = make_workers(length, global_length, models, train_max_length)
    figures = []
    for phase in ("forward", "train"):
        able = [worker for worker in workers if phase in worker.phases]
        times = collections.defaultdict(list)
        speeds = {dtype: [] for dtype in matmul.phases}
        peaks = {}
        for number in range(rounds + 1):
            for worker in list(able):
                try:
                    seconds, peaks[worker.name] = worker.measure(phase)
                except RuntimeError as error:
                    _say(f"error: {error}")
                    able.remove(worker)
                    continue
                if number == 0:  # That traced and warmed up.
                    continue
                times[worker.name].append(seconds)
                for dtype, values in speeds.items():
                    speed, _ = matmul.measure(dtype)
                    values.append(benchmark_worker.matmul_seconds_to_speed(speed))
                _say(f"{length} {phase} {worker.name}: {seconds:.2f} s")
        figures += [
            _figure(length, global_length, phase, worker.name, times, peaks, speeds)
            for worker in able
        ]
        for worker in able:
            if worker.phases[-1] == phase:  # Memory for the others.
                worker.close()
    return figures


def _figure(length, global_length, phase, name, times, peaks, speeds):
    seconds = statistics.median(times[name])
    figure = {
        "length": length,
        "global_length": global_length,
        "phase": phase,
        "model": name,
        "seconds": seconds,
        "seconds_all": times[name],
        "tokens_per_second": length / seconds,
        "peak_bytes": peaks[name],
        "matmul_flops_per_second": {k: statistics.median(v) for k, v in speeds.items()},
    }
    if name.startswith("etc"):
        work = benchmark_worker.flops(length, global_length) * (3 if phase == "train" else 1)
        dtype = "bfloat16" if "bfloat16" in name else "float32"
        figure["flops"] = work
        figure["share"] = work / seconds / figure["matmul_flops_per_second"][dtype]
    return figure


def _say(text):
    print(text, file=sys.stderr, flush=True)


def main(unused_argv):
    if _TORCH.value and not os.path.exists(_TORCH.value):
        print(f"error: --torch_python: no such file: {_TORCH.value!r}", file=sys.stderr)
        sys.exit(1)
    lengths = [512, 1024] if _QUICK.value else [int(length) for length in _LENGTHS.value]
    models = ["etc", "bert"] if _QUICK.value else _MODELS.value
    rounds = 1 if _QUICK.value else _ROUNDS.value
    train_max = 512 if _QUICK.value else _TRAIN_MAX.value
    matmul = tensorflow_worker("matmul", "matmul", ("float32", "bfloat16"))
    for dtype in matmul.phases:
        matmul.measure(dtype)
    figures = []
    try:
        for length in lengths:
            global_length = _GLOBAL_LENGTH.value or min(length // 16, 512)
            figures += measure_length(length, global_length, models, matmul, rounds, train_max)
    finally:
        matmul.close()
    benchmark_report.write(figures, _OUTPUT_DIR.value)
    print(benchmark_report.table(figures))


if __name__ == "__main__":
    app.run(main)
