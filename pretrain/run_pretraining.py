"""Pre-trains ETC on the records of `preprocess` (paper, sections 3.5 and 4.1, appendices B and C).

Modes: `train` makes checkpoints in --output_dir (and evaluates them where held-out records are
given); `evaluate` prints the metrics of the best checkpoint, of a model and text as the run has
them. A checkpoint is what the fine-tuning programs take as --init_checkpoint; `etc_config.json`
beside it is their --model_config_file.

  python -m etcmodel.pretrain.run_pretraining --preset=etc_base --output_dir=/models/etc_base \
    --train_data='/data/train-*' --vocab_file=vocab.txt
"""

from absl import flags

from etcmodel import options

from . import run_config


def main(argv):
    """Does what the parsed flags say."""
    from . import program  # With TensorFlow, which takes seconds to import.

    program.Program(flags.FLAGS).main(argv)


if __name__ == "__main__":
    run_config.option_flags(flags.FLAGS).define()
    options.run_main(main)
