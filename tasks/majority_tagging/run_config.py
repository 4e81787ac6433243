"""What a run on majority tagging is told beside the training options, as flags."""

import dataclasses

from etcmodel import finetuning, options

from .features import InputConfig, MajorityOptions

__all__ = ["MajorityConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MajorityConfig(MajorityOptions, options.PaddingOptions, finetuning.GmatFinetuningConfig):
    """Everything about a run beside the training options; each field's help says what it means."""

    help_texts = {
        "eval_gold": "JSON lines with the tags of the sequences to evaluate on.",
        "predictions_file": "Where predictions go, as JSON {id: tags}. None: predictions.json in "
        "--output_dir.",
    }

    def records(self):
        from . import inputs  # With TensorFlow, which takes seconds to import.

        return inputs.RecordConfig.of_run(self)

    def features(self):
        """How raw sequences become features, at prediction."""
        return InputConfig(**options.shared(InputConfig, self), is_training=False)
