"""Trains a character language model in phases (Beltagy et al. 2020, section 4).

Modes: `train` makes a run in each folder --output_dir/phase_1, phase_2 …, which begins with the
best weights of the phase before; run again with the same flags, it goes on where it was. `evaluate`
prints the bits per character of the last phase's best checkpoint.

  python -m etcmodel.pretrain.run_char_lm --preset=small --text_file=enwik8 --output_dir=runs/enwik8
"""

from absl import flags

from etcmodel import options

from .char_lm import run_options


def main(argv):
    """Does what the parsed flags say."""
    from .char_lm import program  # With TensorFlow, which takes seconds to import.

    program.Program(flags.FLAGS).main(argv)


if __name__ == "__main__":
    run_options.option_flags(flags.FLAGS).define()
    options.run_main(main)
