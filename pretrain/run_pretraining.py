"""Pre-trains ETC, or any system with a `masked_lm`, on records written by `preprocess`.

ETC is trained with masked language modeling and contrastive predictive coding (paper, sections 3.5
and 4.1, appendices B and C), the others with masked language modeling alone, on windows of text.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if held-out records are
given); `continuous_eval` evaluates each of them from another process; `evaluate` prints the metrics
of the best one, with the model and text settings of the run; `save_pretrained` writes it as a
folder for `etcmodel.from_pretrained` and fine-tuning. Fine-tuning programs also accept the run's
folder as --init_checkpoint. Here, --init_checkpoint may be the folder of a BERT, in place of
--preset.

  python -m etcmodel.pretrain.run_pretraining --preset=etc_base --output_dir=/models/etc_base \
    --train_data='/data/train-*' --vocab_file=vocab.txt
"""

from . import config, program_options


def load_program():
    """The program's class."""
    from . import program  # Imports TensorFlow, which takes seconds.

    return program.Program


if __name__ == "__main__":
    program_options.run_program(config.option_flags, load_program)
