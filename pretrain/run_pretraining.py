"""Pre-trains ETC, Longformer or GMAT on the records of `preprocess`.

ETC learns by a masked language model and contrastive predictive coding (paper, sections 3.5 and
4.1, appendices B and C), the others by a masked language model alone, on windows of text.

Modes: `train` makes checkpoints in --output_dir (and evaluates them where held-out records are
given); `continuous_eval` evaluates each of them in another process; `evaluate` prints the metrics
of the best one, of a model and text as the run has them; `save_pretrained` writes it as a folder
that `etcmodel.from_pretrained` and fine-tuning take. Fine-tuning programs also take the run's
folder as --init_checkpoint, and so does this one the folder of a BERT, in place of --preset.

  python -m etcmodel.pretrain.run_pretraining --preset=etc_base --output_dir=/models/etc_base \
    --train_data='/data/train-*' --vocab_file=vocab.txt
"""

from . import program_options, run_config


def load_program():
    """The program's class."""
    from . import program  # With TensorFlow, which takes seconds to import.

    return program.Program


if __name__ == "__main__":
    program_options.run_program(run_config.option_flags, load_program)
