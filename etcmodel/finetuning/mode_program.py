"""The base of all programs with runs: flags, the mode, and errors in one line."""

import abc

from etcmodel import program_end, quiet, training

__all__ = ["ModeProgram"]


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
            raise ValueError(f"--run_mode={mode} also needs {', '.join(missing)}.{advice}")

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
