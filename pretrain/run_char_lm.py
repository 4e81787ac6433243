"""Trains a character language model in phases (Beltagy et al. 2020, section 4).

Modes: `train` runs each phase in a folder of its own, --output_dir/phase_1, phase_2 …, starting
from the best weights of the previous phase; run again with the same flags, it resumes where it
stopped. `evaluate` prints the bits per character of the last phase's best checkpoint.

  python -m etcmodel.pretrain.run_char_lm --preset=small --text_file=enwik8 --output_dir=runs/enwik8
"""

from . import program_options
from .char_lm import config


def load_program():
    """The program's class."""
    from .char_lm import program  # Imports TensorFlow, which takes seconds.

    return program.Program


if __name__ == "__main__":
    program_options.run_program(config.option_flags, load_program)
