"""The options of a run on classification, besides the training options."""

import dataclasses
import math

from etcmodel import finetuning, options

from .config import REGRESSION, ClassificationFeatureOptions, ClassificationInputConfig

__all__ = ["ClassificationConfig"]

option = finetuning.option
BALANCED = ("balanced",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationConfig(
    ClassificationFeatureOptions,
    options.PaddingOptions,
    options.TableOptions,
    finetuning.FinetuningConfig,
):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "vocab_file": options.ANY_VOCABULARY,
        "eval_gold": "None: the records of --eval_data have the labels, too.",
        "input_file": "Raw file or folder of the texts to predict, in mode predict.",
        "predictions_file": "Where predictions go, a JSON object a line. None: predictions.json in "
        "--output_dir.",
    }
    not_needed = ("eval_gold",)

    not_of_evaluation = (
        "text_field",
        "second_text_field",
        "label_field",
        "id_field",
        "label_separator",
    )

    pooling: str = option(
        "first_global",
        "Input of ETC's classification head: the mean of the long tokens, the first long token, or "
        "the first global token, which represents the whole text. Other models use their first "
        "token.",
        role="model",
        choices=("mean", "first", "first_global"),
    )
    class_weights: tuple = option(
        (),
        "Weights of the labels in the loss, in the order of the labels: numbers, or 'balanced' to "
        "give rare labels as much total weight as frequent ones. None: 1 each.",
        role="training",
    )

    export_texts: bool = option(
        False,
        "Export a model that takes raw text, as the served page needs. Otherwise the model takes "
        "features, as mode predict needs.",
        group="serving",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.eval_gold:
            raise ValueError("`eval_gold` must be left out: the records have the labels.")
        if self.class_weights and self.problem_type == REGRESSION:
            raise ValueError("`class_weights` must be left out: a regression has no labels.")
        if self.class_weights not in ((), BALANCED):
            weights = list(map(_as_number, self.class_weights))
            if len(weights) != len(self.labels) or not all(0 <= x < math.inf for x in weights):
                raise ValueError(
                    "`class_weights` must be 'balanced', or numbers of at least 0, one for each of "
                    f"the labels {list(self.labels)}. Received: {list(self.class_weights)}"
                )

    def records(self):
        from . import inputs  # Imports TensorFlow, which takes seconds.

        return inputs.RecordConfig.of_run(self)

    def features(self):
        """The feature settings at inference."""
        return ClassificationInputConfig(**options.shared(ClassificationInputConfig, self))


def _as_number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan
