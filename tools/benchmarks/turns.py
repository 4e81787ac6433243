"""Models in processes of their own that take turns, so that ratios hold on a noisy machine."""

import collections
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import time

from etcmodel import posix_only
from etcmodel.options import Options, option

__all__ = [
    "ClockOptions",
    "Worker",
    "keras_hub_worker",
    "script_worker",
    "take_turns",
    "tensorflow_worker",
    "torch_worker",
]

_HERE = pathlib.Path(__file__).resolve().parent
_CLOCKS = {"time": time.perf_counter, "processor": time.process_time}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClockOptions(Options):
    """The choice of a clock."""

    clock: str = option(
        "time",
        "Clock for the seconds: wall-clock 'time'; or 'processor', the CPU time of all threads of "
        "the measured process, which other load on the machine hardly changes. With 'processor', "
        "measure a single thread: TF_NUM_INTRAOP_THREADS=1 taskset --cpu-list 0 …",
        choices=tuple(_CLOCKS),
    )

    def seconds(self):
        """Of this process: float, to take differences of."""
        return _CLOCKS[self.clock]()


class Worker:
    """A model in a process of its own.

    Args:
        name: of the model, as reported.
        command: list of str. Starts the process.
        phases: what may be asked of it.

    Attributes:
        clock: str. What seconds are of, as `ClockOptions` have it.
    """

    def __init__(self, name, command, phases=("forward", "train")):
        self.name, self.clock = name, "time"
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
        return answer[self.clock], answer["peak_bytes"]

    def close(self):
        """Ends the process, if there is one; whether it died before does not matter."""
        if self._process is None:
            return
        with contextlib.suppress(BrokenPipeError):  # Of what it was asked and did not read.
            self._process.stdin.close()
        self._process.wait()


def tensorflow_worker(name, kind, phases=("forward", "train"), **settings):
    """A model of TensorFlow's, see `worker.py`."""
    command = [sys.executable, "-m", "etcmodel.tools.benchmarks.worker", kind, json.dumps(settings)]
    return Worker(name, command, phases)


def torch_worker(name, python, kind, phases, **settings):
    """A model of Hugging Face's, see `torch_worker.py`.

    Args:
        name: of the model, as reported.
        python: str. Interpreter that has `torch` and `transformers`.
        kind: str. Of the model.
        phases: what may be asked of it.
        **settings: of the kind.
    """
    settings = {"threads": posix_only.usable_cores(), **settings}
    return script_worker(_HERE / "torch_worker.py", name, python, kind, phases, settings)


def keras_hub_worker(name, python, kind, phases, **settings):
    """A model of keras-hub's, see `keras_hub_worker.py`; `python` has it and TensorFlow."""
    return script_worker(_HERE / "keras_hub_worker.py", name, python, kind, phases, settings)


def script_worker(script, name, python, kind, phases, settings):
    """A model that a script measures, in the interpreter `python`: `Worker`.

    Args:
        script: path. Its arguments are the kind and the settings as JSON.
        name: of the model, as reported.
        python: str. Interpreter.
        kind: str. Of the model.
        phases: what may be asked of it.
        settings: dict for JSON.
    """
    return Worker(name, [python, str(script), kind, json.dumps(settings)], phases)


def take_turns(workers, phase, rounds, after_each=None, label=""):
    """Lets each worker run a phase, one after the other, several times.

    Args:
        workers: list of `Worker`.
        phase: str.
        rounds: int. Measured runs, after a first one that traces and warms up.
        after_each: function without arguments, called after each measured run.
        label: str, in front of what is said of each run.
    Returns:
        (able, times, peaks): the workers that did not die, and dicts of their names to lists of
        seconds and to the peak memory in bytes.
    """
    able, times, peaks = list(workers), collections.defaultdict(list), {}
    for number in range(rounds + 1):
        for worker in list(able):
            try:
                seconds, peaks[worker.name] = worker.measure(phase)
            except RuntimeError as error:
                _say(f"error: {error}")
                able.remove(worker)
                continue
            if number == 0:
                continue
            times[worker.name].append(seconds)
            if after_each:
                after_each()
            _say(f"{label}{phase} {worker.name}: {seconds:.2f} s")
    return able, times, peaks


def _say(text):
    print(text, file=sys.stderr, flush=True)
