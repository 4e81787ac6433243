"""Fine-tunes, evaluates, exports and runs models that answer SQuAD's questions.

They are ETC, Longformer, BigBird, ModernBERT and GMAT.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if the evaluation flags are
given); `evaluate` prints the official metrics of the best checkpoint; `export` writes it as a
SavedModel; `predict` answers the questions of a raw JSON file with an exported model.
"""

from etcmodel import finetuning

from .config import SquadConfig

if __name__ == "__main__":
    finetuning.run_program(SquadConfig)
