"""The flags and the start of a fine-tuning program; imports TensorFlow only after parsing flags."""

from absl import flags

from etcmodel import options as options_lib
from etcmodel.finetuning import program_options, release_flags
from etcmodel.training.config import TrainingConfig

__all__ = ["define_flags", "option_flags", "run_program"]

flags.disclaim_key_flags()  # So that --help shows the flags as those of the calling program.


def run_program(config_class, load_parts, *, defaults=None, release=None):
    """Runs a task's fine-tuning program.

    Args:
        config_class: the task's subclass of `FinetuningConfig`.
        load_parts: function without arguments that returns the task's subclasses of
            `FinetuningTask` and `Predictor`. It is called after the flags are parsed, so that
            `--help` does not wait for its imports.
        defaults: dict of `TrainingConfig` field to the task's default.
        release: `ReleaseFlags`.

    >>> import subprocess, sys
    >>> command = [sys.executable, "-m", "etcmodel.tasks.classification.run_finetuning", "--help"]
    >>> print(subprocess.run(command, capture_output=True, text=True).stdout[:66])
    Fine-tunes, evaluates, exports and runs ETC, Longformer or GMAT on
    """
    release = release or release_flags.ReleaseFlags()
    program_flags = define_flags(config_class, release, flags.FLAGS, defaults)

    def main(argv):
        from etcmodel.finetuning import program  # Imports TensorFlow, which takes seconds.

        program.Program(*load_parts(), release=release).main(argv)

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
        "program": program_options.ProgramOptions,
        "training": TrainingConfig,
        "task": config_class,
    }
    return options_lib.ProgramFlags(
        sections, flag_values, aliases=release.aliases, defaults=defaults
    )
