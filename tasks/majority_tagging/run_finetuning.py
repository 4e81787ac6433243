"""Trains, evaluates, exports and runs GMAT on majority tagging.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if the evaluation flags are
given); `evaluate` prints the scores of the best checkpoint beside those of a constant answer;
`export` writes it as a SavedModel; `predict` tags the sequences of a raw file with an exported
model.
"""

from etcmodel import finetuning

from .config import MajorityConfig

# For the paper's models of 768 units and sequences of 512 tokens; smaller models need higher rates.
DEFAULTS = {
    "optimizer": "bert_adam",
    "learning_rate": 2e-6,
    "num_train_epochs": 2.0,
    "train_batch_size": 80,
    "warmup_proportion": 0.01,
}


if __name__ == "__main__":
    finetuning.run_program(MajorityConfig, defaults=DEFAULTS)
