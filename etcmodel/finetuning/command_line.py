"""The flags and the start of a fine-tuning program; imports TensorFlow only after parsing flags."""

import dataclasses
import os
import types

from absl import flags

from etcmodel import options as options_lib
from etcmodel.finetuning.config import beside, nothing_beside
from etcmodel.options import ModelOptions, ResumeOptions, Values, option, program_help
from etcmodel.training.config import TrainingConfig

flags.disclaim_key_flags()  # So that --help shows the flags as those of the calling program.

# The options of a fine-tuning program itself: mode, model and directories.


OPTIONS_FILE = "options.yaml"  # In the directory of a run.
RUN_MODES = (
    *("train", "continuous_eval", "evaluate", "predict_records", "save_pretrained", "export"),
    "predict",
)

# The options that each mode needs.
NEEDED = {
    "train": ("output_dir", "train_data"),
    "evaluate": ("output_dir", "eval_data", "eval_gold"),
    "continuous_eval": ("output_dir", "eval_data", "eval_gold"),
    "predict_records": ("output_dir", "eval_data", "eval_gold"),
    "save_pretrained": ("output_dir",),
    "export": ("output_dir",),
    "predict": ("input_file",),
}
AFTER_TRAINING = ("evaluate", "continuous_eval", "predict_records", "save_pretrained", "export")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramOptions(ModelOptions, ResumeOptions):
    """The mode, the model and the weights."""

    needed = types.MappingProxyType(
        {
            **NEEDED,
            "train": ("output_dir", "init_checkpoint", "train_data"),  # Or --model_config_file.
            "predict": ("export_dir", *NEEDED["predict"]),  # Or --output_dir, of a run.
        }
    )

    run_mode: str = option("train", "What the program does.", choices=RUN_MODES)
    export_dir: str | None = option(
        None,
        "Directory for exported models, each in a subfolder named by its step. None: export in "
        "--output_dir.",
        group="serving",
        example="run/export",
    )
    export_ckpts: str | None = option(
        None,
        "Checkpoint to evaluate or export (path prefix). None: the best one, or the latest if none "
        "is marked best.",
        group="serving",
    )
    pretrained_dir: str | None = option(
        None,
        "Folder to write in mode save_pretrained. None: pretrained in --output_dir.",
        group="serving",
    )
    eval_timeout: float | None = option(
        None,
        "Seconds without a new checkpoint after which continuous_eval stops, even if the run has "
        "not reached its last step. None: wait indefinitely.",
        lower_bound=0,
        group="evaluation",
    )


# Flags of the authors' release that differ from ours, so that its commands work here.
#
# A flag with another name is an alias. A flag with another meaning is translated, and a flag
# without effect here is accepted; a line is logged for both.


_DEFINERS = {bool: flags.DEFINE_bool, str: flags.DEFINE_string}

# Flags of all programs of the release, with their types and why they have no effect.
NO_EFFECT = types.MappingProxyType(
    {
        "iterations_per_loop": (str, "steps run until the next report or checkpoint is due"),
        "master": (str, "--tpu_name takes the address of a TPU, too"),
        "tpu_job_name": (str, "TensorFlow finds the TPU's workers by --tpu_name"),
        "num_tpu_cores": (str, "all cores of the TPU are used"),
        "verbose_logging": (bool, "--verbosity says how much is logged"),
    }
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseFlags:
    """The flags of the release that a program accepts, besides those with the same names.

    Attributes:
        aliases: dict from an alias to its option, in addition to those of the task's configuration.
        modes: dict from a flag such as `do_train` to the equivalent value of --run_mode.
        train_data_is_eval_data: str. An alias of --train_data that stands for --eval_data in an
            evaluation by one of `modes`.
        predict_means_eval: bool. Whether --run_mode=predict with --eval_data and without
            --input_file evaluates every checkpoint.
        predictions_name: (flag, suffix). The name of the predictions' file in --output_dir.
        no_effect: dict from a flag to (its type, bool or str; why it has no effect).

    >>> from etcmodel import finetuning
    >>> finetuning.ReleaseFlags(modes={"do_train": "train"}).modes
    {'do_train': 'train'}
    """

    aliases: dict = dataclasses.field(default_factory=dict)
    modes: dict = dataclasses.field(default_factory=dict)
    train_data_is_eval_data: str | None = None
    predict_means_eval: bool = False
    predictions_name: tuple = ()
    no_effect: dict = dataclasses.field(default_factory=lambda: dict(NO_EFFECT))

    def define(self, flag_values):
        """Defines the flags, except aliases; returns the group of each in --help: dict."""
        for name, mode in self.modes.items():
            flags.DEFINE_bool(
                name, None, f"The release's name for --run_mode={mode}.", flag_values=flag_values
            )
        if self.predictions_name:
            name, suffix = self.predictions_name
            help_text = (
                f"The release's --predictions_file: its name in --output_dir, without {suffix}."
            )
            flags.DEFINE_string(name, None, help_text, flag_values=flag_values)
        flags.DEFINE_bool(
            "use_tpu",
            None,
            "The release's flag for --distribution_strategy=tpu.",
            flag_values=flag_values,
        )
        for name, (kind, why) in self.no_effect.items():
            help_text = f"Accepted for compatibility with the release; no effect: {why}."
            _DEFINERS[kind](name, None, help_text, flag_values=flag_values)
        translated = [*self.modes, *self.predictions_name[:1], "use_tpu"]
        return {
            **dict.fromkeys(translated, program_help.COMPATIBILITY),
            **dict.fromkeys(self.no_effect, program_help.HIDDEN),
        }

    def resolve(self, flag_values):
        """Sets our flags from those of the release.

        Args:
            flag_values: parsed `flags.FlagValues`, with resolved aliases.
        Returns:
            list of str: a line for each flag that is translated or has no effect.
        Raises:
            ValueError: naming both flags, if two contradict each other.
        """
        values = Values(flag_values)
        lines = self._resolve_mode(values)
        lines += self._resolve_tpu(values)
        for name, (_, why) in self.no_effect.items():
            if values.is_given(name):
                lines.append(f"--{name} has no effect here: {why}.")
        return lines

    def _resolve_mode(self, values):
        given = [name for name in self.modes if values.is_given(name)]
        chosen = [name for name in given if values[name]]
        if len(chosen) > 1:
            names = " and ".join(f"--{name}" for name in chosen)
            raise ValueError(f"{names} are jobs of their own. Give one of them.")
        if given and not chosen and not values.is_given("run_mode"):
            raise ValueError(
                f"There is nothing to do: --{given[0]}={values.text(given[0])}. Give --run_mode."
            )
        if chosen:
            mode = self.modes[chosen[0]]
            old = f"--{chosen[0]}={values.text(chosen[0])}"
            return [values.translate(old, "run_mode", mode), *self._resolve_eval(values, mode)]
        asks_for_records = values.is_given("eval_data") and not values.is_given("input_file")
        if self.predict_means_eval and values["run_mode"] == "predict" and asks_for_records:
            values.forget("run_mode")
            old = "--run_mode=predict with --eval_data"
            line = values.translate(old, "run_mode", "continuous_eval")
            return [line, *self._resolve_eval(values, "continuous_eval")]
        return []

    def _resolve_eval(self, values, mode):
        """Sets the further flags that an evaluation by the release's flags implies."""
        if mode not in ("continuous_eval", "predict_records"):
            return []
        lines, alias = [], self.train_data_is_eval_data
        if alias and values.is_given(alias) and not values.is_given("eval_data"):
            value = values[alias]
            values.forget("train_data")
            lines.append(values.translate(f"--{alias} of an evaluation", "eval_data", value))
        if (
            mode == "continuous_eval"
            and values.is_given("predict_batch_size")
            and not values.is_given("eval_batch_size")
        ):
            size = values["predict_batch_size"]
            old = "--predict_batch_size of an evaluation"
            lines.append(values.translate(old, "eval_batch_size", size))
        name, suffix = self.predictions_name or (None, None)
        if name and values.is_given(name):
            path = os.path.join(values["output_dir"] or "", values[name] + suffix)
            lines.append(values.translate(f"--{name}", "predictions_file", path))
        return lines

    def _resolve_tpu(self, values):
        if not values.is_given("use_tpu"):
            return []
        old = f"--use_tpu={values.text('use_tpu')}"
        strategy = values["distribution_strategy"]
        if values["use_tpu"]:
            return [values.translate(old, "distribution_strategy", "tpu")]
        if strategy == "tpu":
            raise ValueError(f"{old} contradicts --distribution_strategy=tpu. Give one of them.")
        return []


# The start of a program.


def load_task(config_class):
    """The `FinetuningTask` and `Predictor` of a config's folder, from its module `predict`.

    Without that module, they are those of the config that it extends, with this config.

    Raises:
        ValueError: naming the class, if there are none.
    """
    predict = next(beside(config_class, "predict"), None)
    names = getattr(predict, "__all__", ())
    predictor = getattr(predict, names[0], None) if names else None
    if not hasattr(predictor, "task_class"):
        needed = "a predictor, the first name in its `__all__`,"
        raise nothing_beside(config_class, "predict", needed, "give `load_parts`")
    task = predictor.task_class
    if task.config_class is not config_class:
        # The module finds its neighbors, such as `report`.
        entries = {"__module__": task.__module__, "config_class": config_class}
        task = type(task.__name__, (task,), entries)
        entries = {"__module__": predictor.__module__, "task_class": task}
        predictor = type(predictor.__name__, (predictor,), entries)
    return task, predictor


def run_program(config_class, load_parts=None, *, defaults=None, release=None):
    """Runs a task's fine-tuning program.

    Args:
        config_class: the task's subclass of `FinetuningConfig`.
        load_parts: function without arguments that returns the task's subclasses of
            `FinetuningTask` and `Predictor`. It is called after the flags are parsed, so that
            `--help` does not wait for its imports. None: those of `load_task`.
        defaults: dict of `TrainingConfig` field to the task's default.
        release: `ReleaseFlags`.

    >>> import subprocess, sys
    >>> command = [sys.executable, "-m", "etcmodel.tasks.classification.run_finetuning", "--help"]
    >>> print(subprocess.run(command, capture_output=True, text=True).stdout[:66])
    Fine-tunes, evaluates, exports and runs models that classify texts
    """
    release = release or ReleaseFlags()
    program_flags = define_flags(config_class, release, flags.FLAGS, defaults)

    def main(argv):
        from etcmodel.finetuning import program  # Imports TensorFlow, which takes seconds.

        parts = load_parts() if load_parts else load_task(config_class)
        program.Program(*parts, release=release).main(argv)

    options_lib.run_main(main, program=program_flags)


def define_flags(config_class, release, flag_values, defaults=None):
    """Defines all flags: those of training, of the task, of the release and of all programs.

    Args:
        config_class: see `run_program`.
        release: `ReleaseFlags`.
        flag_values: `flags.FlagValues` to define them in.
        defaults: see `run_program`.
    Returns:
        `ProgramFlags`.
    """
    program = option_flags(config_class, release, flag_values, defaults)
    program.define()
    program.groups |= release.define(flag_values)
    return program


def option_flags(config_class, release, flag_values, defaults=None):
    """The `ProgramFlags` of the options. Args: as in `define_flags`."""
    sections = {
        "program": ProgramOptions,
        "training": TrainingConfig,
        "task": config_class,
    }
    return options_lib.ProgramFlags(
        sections, flag_values, aliases=release.aliases, defaults=defaults
    )
