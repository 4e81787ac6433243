"""The options of a run on numerical reasoning, besides the training options."""

import dataclasses

from etcmodel import finetuning, options

from .features import InputConfig, NumericalOptions

__all__ = ["NumericalConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumericalConfig(NumericalOptions, options.PaddingOptions, finetuning.GmatFinetuningConfig):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "JSON lines with the answers to the questions to evaluate on.",
        "predictions_file": "Where predictions go, as JSON {id: answer}. None: predictions.json in "
        "--output_dir.",
    }

    not_of_evaluation = ("max_answer_length",)

    untied_memory: bool | None = finetuning.option(
        None,
        "Whether the memory's queries, and the keys and values that they attend to, have their own "
        "projections. None: as in the model's config.",
        role="model",
    )

    def model_config(self):
        config = super().model_config()
        if self.untied_memory is None:
            return config
        return dataclasses.replace(config, has_own_memory_projections=self.untied_memory)

    def records(self):
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.RecordConfig.of_run(self)

    def features(self):
        """The feature settings at prediction."""
        return InputConfig(**options.shared(InputConfig, self), is_training=False)
