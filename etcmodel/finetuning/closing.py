"""The closing message of a training: the best checkpoint, and the commands to run next."""

import os
import re
import shlex
import sys

import tensorflow as tf

from etcmodel import training
from etcmodel.training import progress, run, saving

__all__ = ["Ending", "command", "command_of_program"]

_OF_COMMANDS = re.compile(r"etcmodel\.(?:tasks\.(\w+)\.run_finetuning|pretrain\.run_(\w+))")


class Ending(training.Callback):
    """Prints the closing message of a run, in the process that writes the run's files.

    Args:
        task: Task.
        output_dir: str. Directory of the run.
    """

    def __init__(self, task, output_dir):
        self._task, self._output_dir = task, output_dir
        self._step = None

    def on_end(self, step, metrics):
        self._step = step

    def tell(self, *commands):
        """Prints the best step and its score, the folder, and the next commands (str)."""
        if self._step is None:  # The best checkpoint is another worker's.
            return
        lines = [
            f"done    step {self._step}",
            f"best    {self._best()}",
            f"folder  {self._output_dir}",
            f"next    {commands[0]}",
            *(f"        {line}" for line in commands[1:]),
        ]
        print("\n".join(["", *lines]), file=sys.stderr, flush=True)

    def _best(self):
        value = saving.read_best(self._output_dir)
        path = tf.train.latest_checkpoint(os.path.join(self._output_dir, saving.BEST))
        if value is None or path is None:
            return "not known: nothing was evaluated"
        metric, log = self._task.best_metric, os.path.join(self._output_dir, run.EVAL_LOG)
        alike = sum(line.get(metric) == value for line in progress.MetricsLog(log).read())
        tie = f", one of {alike} that are equally good" * (alike > 1)
        return f"step {path.rpartition('-')[2]}, {metric} {value:.4g}{tie}: {path}"


def command(words, **given):
    """A command line as typed in a shell, with these flags (values are str): str."""
    return f"etcmodel {words} {_flags(given)}"


def command_of_program(run_mode, **given):
    """`command` for another mode of the running program."""
    spec = sys.modules["__main__"].__spec__
    if spec is None:
        return f"python {shlex.quote(sys.argv[0])} --run_mode={run_mode} {_flags(given)}"
    if found := _OF_COMMANDS.fullmatch(spec.name):
        return command(f"{run_mode} {found[1] or found[2]}", **given)
    return f"python -m {spec.name} --run_mode={run_mode} {_flags(given)}"


def _flags(given):
    return shlex.join(f"--{name}={value}" for name, value in given.items())
