"""Fine-tunes, evaluates, exports and runs ETC on HotpotQA (paper, section 4.1, appendix C).

Modes: `train` writes checkpoints to --output_dir (and evaluates them if the evaluation flags are
given); `evaluate` prints the official metrics of the best checkpoint; `export` writes it as a
SavedModel; `predict` answers the questions of a raw JSON file with an exported model.
"""

from etcmodel import finetuning

from .config import HotpotQaConfig

if __name__ == "__main__":
    finetuning.run_program(
        HotpotQaConfig,
        release=finetuning.ReleaseFlags(
            predict_means_eval=True,
            no_effect={
                **finetuning.NO_EFFECT,
                "save_raw_predictions": (bool, "--predictions_file has the official format"),
            },
        ),
    )
