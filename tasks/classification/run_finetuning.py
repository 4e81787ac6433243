"""Fine-tunes, evaluates, exports and runs models that classify texts.

They are ETC, Longformer, BigBird, ModernBERT and GMAT.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if --eval_data is given);
`evaluate` prints the metrics of the best checkpoint; `export` writes it as a SavedModel; `predict`
labels raw texts with an exported model.
"""

from etcmodel import finetuning

from .config import ClassificationConfig

if __name__ == "__main__":
    finetuning.run_program(ClassificationConfig)
