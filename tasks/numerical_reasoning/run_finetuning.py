"""Trains, evaluates, exports and runs GenBERT with a GMAT encoder on numerical reasoning.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if the evaluation flags are
given); `evaluate` prints the scores of the best checkpoint; `export` writes it as a SavedModel;
`predict` answers the questions of a raw file with an exported model.
"""

from etcmodel import finetuning

from .config import NumericalConfig

# For the paper's models, initialized from BERT-base; small models need higher rates.
DEFAULTS = {
    "optimizer": "bert_adam",
    "learning_rate": 3e-5,
    "num_train_epochs": 15.0,
    "train_batch_size": 68,
    "warmup_proportion": 0.1,
}


if __name__ == "__main__":
    finetuning.run_program(NumericalConfig, defaults=DEFAULTS)
