"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, OneInputOptions, changed, option

__all__ = ["InputConfig", "NumericalConfig", "NumericalExampleOptions", "NumericalOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumericalOptions(OneInputOptions):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(
        FeatureOptions,
        "long_seq_length",
        default=140,
        help_text="Length of question and passage together in tokens, including padding.",
    )
    max_answer_length: int = option(
        20,
        "Maximum length of an answer in tokens, including the special tokens before and after it.",
        role="features",
        lower_bound=3,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumericalExampleOptions(NumericalOptions):
    """Further options of preprocessing."""

    is_training: bool = option(True, "Reject questions without an answer.", role="features")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputConfig(NumericalExampleOptions, FeatureOptions):
    """Settings of `make_features`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumericalConfig(NumericalOptions, options.PaddingOptions, finetuning.GmatFinetuningConfig):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "JSON lines with the answers to the questions to evaluate on.",
        "predictions_file": "Where predictions go, as JSON {id: answer}. None: predictions.json in "
        "--output_dir.",
        "vocab_file": options.WORD_PIECES,
    }
    input_class = InputConfig

    not_of_evaluation = ("max_answer_length",)

    untied_memory: bool | None = option(
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
