"""The base of all programs with runs: flags, the mode, and errors in one line."""

import abc
import os
import re
import shlex
import sys

import tensorflow as tf

from etcmodel import program_end, quiet, training
from etcmodel.models import systems
from etcmodel.training import progress, run, run_directory, saving
from etcmodel.training.config import has_added_decays

# The closing message of a training: the best checkpoint, and the commands to run next.


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
        path = tf.train.latest_checkpoint(os.path.join(self._output_dir, run_directory.BEST))
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
    """`command` for another mode of the running program.

    Where decays or systems were added, which the other mode needs, too, it is that of what added
    them.
    """
    spec = sys.modules["__main__"].__spec__
    if spec is None:
        return f"python {shlex.quote(sys.argv[0])} --run_mode={run_mode} {_flags(given)}"
    is_own = has_added_decays() or systems.has_added()
    if is_own and (started := _started_from_outside()):
        return f"python {started} --run_mode={run_mode} {_flags(given)}"
    if found := _OF_COMMANDS.fullmatch(spec.name):
        return command(f"{run_mode} {found[1] or found[2]}", **given)
    return f"python -m {spec.name} --run_mode={run_mode} {_flags(given)}"


def _started_from_outside():
    """What Python was told to run, as typed in a shell; None if it was a part of this library."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word == "-m":
            module = next(words)
            return None if module.partition(".")[0] == "etcmodel" else f"-m {module}"
        if word in ("-X", "-W"):
            next(words)
        elif not word.startswith("-"):
            is_command = os.path.splitext(os.path.basename(word))[0] == "etcmodel"
            return None if is_command else shlex.quote(word)
        elif word == "-c":
            break
    return None


def no_run(folder):
    """What is said of a folder that should have a run, and has none, after other words: str."""
    return f" There is no run in --output_dir={folder} that has a config."


def _flags(given):
    return shlex.join(f"--{name}={value}" for name, value in given.items())


# The base of programs with modes.


class ModeProgram(abc.ABC):
    """A program with modes, selected by --run_mode.

    A subclass has `flag_values`, the `flags.FlagValues` to define and read, and defines
    `option_flags` and `modes`.
    """

    @abc.abstractmethod
    def option_flags(self):
        """The `ProgramFlags` of all options."""

    @abc.abstractmethod
    def modes(self):
        """dict from a value of --run_mode to a function without arguments that runs the mode."""

    def main(self, unused_argv):
        """Runs the mode of the parsed flags; prints errors in one line and exits with status 1."""
        quiet.show_own_messages()
        with program_end.ends_in_one_line():
            self.resolve_flags()
            self.check_flags()
            self._check_change()
            self.modes()[self._flag("run_mode")]()

    def resolve_flags(self):
        """Sets flags from aliases and YAML files.

        Raises:
            ValueError: if two flags contradict each other, or a file is invalid.
        """
        options = self.option_flags()
        options.resolve_aliases()
        options.read_config()

    @abc.abstractmethod
    def check_flags(self):
        """Checks that all flags that the mode needs are given; raises ValueError if not."""

    def _check_change(self):
        if self._flag("change") and self._flag("run_mode") != "train":
            raise ValueError("--change: only --run_mode=train changes options of a run. Leave it.")

    def changes(self):
        """The values of --change: dict from an option to its value."""
        return training.parse_changes(self._flag("change"))

    def program_values(self):
        """The program's own options that also apply to a new run: dict."""
        values = self.option_flags().values("program")
        del values["change"]  # It applies only once.
        return values

    def require(self, *names):
        """Raises ValueError, naming the mode and the missing flags, if some are not given."""
        if missing := [f"--{name}" for name in names if not self._flag(name)]:
            mode, advice = self._flag("run_mode"), ""
            if mode == "train" and "--model_config_file" in missing:
                advice = " The folder of a model, as --init_checkpoint, has its config."
            elif "--model_config_file" in missing and (folder := self._flag("output_dir")):
                advice = no_run(folder)
            raise ValueError(f"--run_mode={mode} also needs {', '.join(missing)}.{advice}")

    def pretrained_dir(self):
        """The folder that the mode save_pretrained writes: str."""
        return self._flag("pretrained_dir") or os.path.join(self._flag("output_dir"), "pretrained")

    def evaluate_continuously(self, prepare):
        """Evaluates every checkpoint of the run in --output_dir, and prints the last metrics.

        Args:
            prepare: function that returns the `Task`, the `TrainingConfig`, and the run's last step
                or None. Called once the run has begun.
        """
        timeout = self._flag("eval_timeout")
        training.wait_for_run(self._flag("output_dir"), timeout)
        task, training_config, num_steps = prepare()
        metrics = training.continuous_eval(
            task, training_config, num_steps=num_steps, timeout=timeout
        )
        training.show_metrics(metrics)

    def _flag(self, name):
        return self.flag_values[name].value
