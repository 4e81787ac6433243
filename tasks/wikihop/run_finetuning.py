"""Fine-tunes, evaluates, exports and runs ETC on WikiHop (paper, section 4.1, appendix C).

With records of marked candidates, also Longformer, BigBird, ModernBERT and GMAT.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if the evaluation flags are
given); `evaluate` prints the accuracy of the best checkpoint; `export` writes it as a SavedModel;
`predict` answers the questions of a raw JSON file with an exported model.
"""

from etcmodel import finetuning

from .config import WikiHopConfig

DEFAULTS = {
    "learning_rate": 3e-5,
    "num_train_epochs": 15.0,
    "weight_decay_rate": 0.1,
    "save_checkpoints_steps": 1000,
    "keep_checkpoint_max": 100,
}
RELEASE = finetuning.ReleaseFlags(
    aliases={"source_model_config_file": "model_config_file", "predict_ckpt": "export_ckpts"},
    modes={
        "do_train": "train",
        "do_eval": "continuous_eval",
        "do_predict": "predict_records",
        "do_export": "export",
    },
    train_data_is_eval_data="input_tf_records_path",
    no_effect={
        **finetuning.NO_EFFECT,
        "max_eval_steps": (str, "an evaluation takes all records"),
        "num_dev_examples": (str, "an evaluation takes all records"),
    },
)


if __name__ == "__main__":
    finetuning.run_program(WikiHopConfig, defaults=DEFAULTS, release=RELEASE)
