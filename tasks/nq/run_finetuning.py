"""Fine-tunes, evaluates, exports and runs ETC on Natural Questions (paper, section 4.2).

Modes: `train` writes checkpoints to --output_dir (and evaluates them if the evaluation flags are
given); `evaluate` prints the official metrics of the best checkpoint; `export` writes it as a
SavedModel; `predict` answers the questions of a raw file with an exported model.
"""

from etcmodel import finetuning

from .config import NqConfig

if __name__ == "__main__":
    finetuning.run_program(
        NqConfig,
        defaults={"train_batch_size": 64, "save_checkpoints_steps": 5000},
        release=finetuning.ReleaseFlags(
            modes={
                "do_train": "train",
                "do_predict": "continuous_eval",
                "do_inference": "predict_records",
            },
            predictions_name=("inference_output_name", ".json"),
        ),
    )
