"""Fine-tunes, evaluates, exports and runs ETC on OpenKP (paper, section 4 and appendix, "OpenKP").

Modes: `train` writes checkpoints to --output_dir (and evaluates them if the evaluation flags are
given); `evaluate` prints the official metrics of the best checkpoint; `export` writes it as a
SavedModel; `predict` extracts the key phrases of the pages in a raw JSONL file with an exported
model.
"""

from etcmodel import finetuning

from .config import OpenKpConfig

if __name__ == "__main__":
    finetuning.run_program(
        OpenKpConfig,
        defaults={
            "train_batch_size": 64,
            "eval_batch_size": 32,
            "num_train_epochs": 2.0,
            "save_checkpoints_steps": 1000,
        },
        release=finetuning.ReleaseFlags(
            aliases={
                "batch_size": "train_batch_size",
                "predict_checkpoint_path": "export_ckpts",
            },
            modes={
                "do_train": "train",
                "do_eval": "continuous_eval",
                "do_predict": "predict_records",
            },
            train_data_is_eval_data="input_tfrecord",
            predictions_name=("predict_output_name", ".jsonl"),
        ),
    )
