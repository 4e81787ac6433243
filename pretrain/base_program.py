"""The base of the programs here, once their flags are parsed."""

import abc
import dataclasses
import typing

from absl import flags

from etcmodel import options as options_lib
from etcmodel import training
from etcmodel.finetuning import mode_program
from etcmodel.finetuning.command_line import OPTIONS_FILE
from etcmodel.models import encoders

__all__ = ["BaseProgram", "kept_files"]


@dataclasses.dataclass(frozen=True)
class BaseProgram(mode_program.ModeProgram):
    """A program that trains a model from a preset or a config file.

    A subclass also has `needed`: for each mode, the flags that it needs besides --output_dir.

    Attributes:
        flag_values: `flags.FlagValues` to define and read.
    """

    flag_values: flags.FlagValues = flags.FLAGS

    needed: typing.ClassVar[dict] = {}

    def define_flags(self):
        """Defines all flags."""
        self.option_flags().define()

    def check_flags(self):
        self.require("output_dir")
        self.require(*self.needed.get(self._flag("run_mode"), ()))

    @abc.abstractmethod
    def preset(self, name):
        """The `EncoderConfig` of a value of --preset."""

    def check_encoder_config(self, config, source):
        """Raises ValueError, naming the source, if the program does not support such a model."""

    def _encoder_config(self):
        """The `EncoderConfig` from the flags."""
        preset, path = self._flag("preset"), self._flag("model_config_file")
        if bool(preset) == bool(path):
            raise ValueError(
                "Either --preset or --model_config_file must be given, and not both."
                f"{self._no_run()}"
            )
        config = self.preset(preset) if preset else encoders.read_config(path)
        source = f"--preset={preset}" if preset else f"--model_config_file={path}"
        self.check_encoder_config(config, source)
        return self._with_period(config)

    def _no_run(self):
        """What is said where modes of a run find none: str."""
        if self._flag("run_mode") == "train" or self._is_model_given():
            return ""
        return mode_program.no_run(self._flag("output_dir"))

    def _with_period(self, config):
        """An `EncoderConfig` with the period of --grad_checkpointing_period, if that is given."""
        if (period := self._flag("grad_checkpointing_period")) is not None:
            return encoders.replace(config, grad_checkpointing_period=period)
        return config

    def _is_model_given(self):
        return bool(self._flag("preset") or self._flag("model_config_file"))

    def _training_config(self, run=None):
        """The `TrainingConfig` of the flags, and of a `TrainedRun` if there is one."""
        if run is not None:
            return run.training_config(self.flag_values)
        return training.TrainingConfig(**self.option_flags().values("training"))

    def _options_text(self, config, training_config):
        """All options in use, as the text of a YAML file for --config."""
        program = self.program_values()
        return options_lib.dump({"program": program, "training": training_config, "task": config})


def kept_files(options_text, encoder_config):
    """The files beside a run's checkpoints: dict from file name to text."""
    config_file = encoders.encoder_type(encoder_config.model_type).config_file
    return {OPTIONS_FILE: options_text, config_file: encoder_config.to_json_string()}
