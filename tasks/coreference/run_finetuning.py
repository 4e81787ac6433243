"""Fine-tunes, evaluates, exports and runs models that resolve coreference.

They are ETC, Longformer, BigBird, ModernBERT and GMAT.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if --eval_data is given);
`evaluate` prints the metrics of the best checkpoint; `export` writes it as a SavedModel; `predict`
finds the clusters of raw documents with an exported model.
"""

from etcmodel import finetuning

from .config import CoreferenceConfig


def load_parts():
    """The task's classes for training and for prediction."""
    from . import predict, task  # Imports TensorFlow, which takes seconds.

    return task.CoreferenceTask, predict.CoreferencePredictor


if __name__ == "__main__":
    finetuning.run_program(CoreferenceConfig, load_parts)
