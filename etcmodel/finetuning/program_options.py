"""The options of a fine-tuning program itself: mode, model and directories."""

import dataclasses
import types

from etcmodel.options import ModelOptions, ResumeOptions, option

__all__ = ["AFTER_TRAINING", "NEEDED", "OPTIONS_FILE", "RUN_MODES", "ProgramOptions"]

OPTIONS_FILE = "options.yaml"  # In the directory of a run.
RUN_MODES = ("train", "continuous_eval", "evaluate", "predict_records", "export", "predict")

# The options that each mode needs.
NEEDED = {
    "train": ("output_dir", "train_data"),
    "evaluate": ("output_dir", "eval_data", "eval_gold"),
    "continuous_eval": ("output_dir", "eval_data", "eval_gold"),
    "predict_records": ("output_dir", "eval_data", "eval_gold"),
    "export": ("output_dir",),
    "predict": ("input_file",),
}
AFTER_TRAINING = ("evaluate", "continuous_eval", "predict_records", "export")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramOptions(ModelOptions, ResumeOptions):
    """The mode, the model and the weights."""

    needed = types.MappingProxyType(
        {
            **NEEDED,
            "train": ("output_dir", "init_checkpoint", "train_data"),  # Or --model_config_file.
            "predict": ("export_dir", *NEEDED["predict"]),  # Or --output_dir, of a run.
        }
    )

    run_mode: str = option("train", "What the program does.", choices=RUN_MODES)
    export_dir: str | None = option(
        None,
        "Directory for exported models, each in a subfolder named by its step. None: export in "
        "--output_dir.",
        group="serving",
        example="run/export",
    )
    export_ckpts: str | None = option(
        None,
        "Checkpoint to evaluate or export (path prefix). None: the best one, or the latest if none "
        "is marked best.",
        group="serving",
    )
    eval_timeout: float | None = option(
        None,
        "Seconds without a new checkpoint after which continuous_eval stops, even if the run has "
        "not reached its last step. None: wait indefinitely.",
        lower_bound=0,
        group="evaluation",
    )
