"""The options and the start of the programs here; they import TensorFlow after parsing flags."""

import dataclasses

from absl import flags

from etcmodel import options as options_lib
from etcmodel.options import ModelOptions, ResumeOptions, option
from etcmodel.training.config import TrainingConfig

__all__ = ["PresetOptions", "option_flags", "run_program"]

flags.disclaim_key_flags()  # So that --help shows the flags as those of the calling program.


@dataclasses.dataclass(frozen=True, kw_only=True)
class PresetOptions(ModelOptions, ResumeOptions):
    """The mode and the model of a program; a subclass has the choices."""

    run_mode: str = option("train", "What the program does.", choices=("train", "evaluate"))
    preset: str | None = option(
        None, "Model size from the paper, in place of --model_config_file.", group="model"
    )


def option_flags(program_options, task_options, defaults, flag_values):
    """The `ProgramFlags` of a program.

    Args:
        program_options: subclass of `PresetOptions`.
        task_options: class of the options besides those of the program and the training.
        defaults: dict from an option's name to a default that replaces that of its field.
        flag_values: `flags.FlagValues` to define and read.
    """
    sections = {"program": program_options, "training": TrainingConfig, "task": task_options}
    return options_lib.ProgramFlags(sections, flag_values, defaults=defaults)


def run_program(of_flags, load_program):
    """Runs a program.

    Args:
        of_flags: function from `flags.FlagValues` to the `ProgramFlags`.
        load_program: function that returns the class of the `BaseProgram`. Called after the flags
            are parsed, so that `--help` does not wait for its imports.
    """
    program = of_flags(flags.FLAGS)
    program.define()
    options_lib.run_main(lambda argv: load_program()(flags.FLAGS).main(argv), program=program)
