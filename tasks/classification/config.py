"""The options of features, and of a run besides the training options."""

import dataclasses
import math
import types

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, changed, option
from etcmodel.text.labels import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL, Labels

__all__ = ["ClassificationConfig", "ClassificationFeatureOptions", "ClassificationInputConfig"]

_LEAST_LABELS = {SINGLE_LABEL: 2, MULTI_LABEL: 1, REGRESSION: 0}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationFeatureOptions(finetuning.SentenceOptions, finetuning.QuestionOptions):
    """Options that features, records and model must agree on."""

    former_values = types.MappingProxyType({"segment_id": None})

    long_seq_length: int = changed(FeatureOptions, "long_seq_length")
    global_seq_length: int = changed(FeatureOptions, "global_seq_length")
    problem_type: str = option(
        SINGLE_LABEL,
        "What to predict for a text: one label, any number of labels, or a number.",
        role="features",
        choices=PROBLEM_TYPES,
    )
    labels: tuple = option(
        (),
        "Labels, in the order of the model's outputs. None: preprocess collects and sorts them.",
        role="features",
    )
    text_field: str = option("text", "Field or column with the text.", role="features")
    second_text_field: str | None = option(
        None, "Field or column with a second text. None: there is only one text.", role="features"
    )
    segment_id: int | None = option(
        None,
        "Token type (segment) of all tokens. None: 1 for the second text, else 0, as in BERT. 0 "
        "suits models trained without types, such as BigBird; 1 is that of the authors' "
        "checkpoints.",
        role="features",
        lower_bound=0,
    )
    label_field: str = option(
        "label", "Field or column with the label, the labels or the number.", role="features"
    )
    id_field: str = option(
        "id",
        "Field or column with the example's id. Without it, the id is the file name and line "
        "number.",
        role="features",
    )
    label_separator: str = option(
        "|", "Separator between several labels in one string, as in tables.", role="features"
    )

    def __post_init__(self):
        super().__post_init__()
        if len(set(self.labels)) < len(self.labels) or not all(self.labels):
            raise ValueError(
                f"`labels` must be different, and not empty. Received: {list(self.labels)}"
            )
        if self.problem_type == REGRESSION and self.labels:
            raise ValueError(f"`labels` must be empty for a regression. Received: {self.labels}")
        if not self.label_separator:
            raise ValueError("`label_separator` must not be empty.")

    def make_labels(self):
        """The `text.labels.Labels` to learn."""
        return Labels(self.labels, self.problem_type, self.label_separator)

    def check_labels(self):
        """Checks the labels; raises ValueError if there are too few."""
        if len(self.labels) < (least := _LEAST_LABELS[self.problem_type]):
            raise ValueError(
                f"--problem_type={self.problem_type} needs at least {least} labels. "
                f"Received: {list(self.labels)}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationInputConfig(ClassificationFeatureOptions, finetuning.ProcessorFeatureOptions):
    """Settings of `features.make_features`."""


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
        "eval_gold": "None: the records of --eval_data have the labels, too.",
        "input_file": "Raw file or folder of the texts to predict, in mode predict.",
        "predictions_file": "Where predictions go, a JSON object a line. None: predictions.json in "
        "--output_dir.",
    }
    not_needed = ("eval_gold",)
    input_class = ClassificationInputConfig
    records_hold = "labels"
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
        if self.class_weights and self.problem_type == REGRESSION:
            raise ValueError("`class_weights` must be left out: a regression has no labels.")
        if self.class_weights not in ((), BALANCED):
            weights = list(map(_as_number, self.class_weights))
            if len(weights) != len(self.labels) or not all(0 <= x < math.inf for x in weights):
                raise ValueError(
                    "`class_weights` must be 'balanced', or numbers of at least 0, one for each of "
                    f"the labels {list(self.labels)}. Received: {list(self.class_weights)}"
                )


def _as_number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan
