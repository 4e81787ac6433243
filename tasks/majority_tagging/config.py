"""The options of a run on majority tagging, besides the training options."""

import dataclasses

from etcmodel import finetuning, options

from .features import InputConfig, MajorityOptions

__all__ = ["MajorityConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MajorityConfig(MajorityOptions, options.PaddingOptions, finetuning.GmatFinetuningConfig):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "JSON lines with the tags of the sequences to evaluate on.",
        "predictions_file": "Where predictions go, as JSON {id: tags}. None: predictions.json in "
        "--output_dir.",
    }

    def records(self):
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.RecordConfig.of_run(self)

    def features(self):
        """The feature settings at prediction."""
        return InputConfig(**options.shared(InputConfig, self), is_training=False)
