"""The options of the features for classification."""

import dataclasses

from etcmodel.options import FeatureOptions, Options, changed, option
from etcmodel.text.labels import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL, Labels

__all__ = [
    "MULTI_LABEL",
    "PROBLEM_TYPES",
    "REGRESSION",
    "SINGLE_LABEL",
    "ClassificationFeatureOptions",
    "ClassificationInputConfig",
]

_LEAST_LABELS = {SINGLE_LABEL: 2, MULTI_LABEL: 1, REGRESSION: 0}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationFeatureOptions(Options):
    """Options that features, records and model must agree on."""

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
class ClassificationInputConfig(ClassificationFeatureOptions, FeatureOptions):
    """Settings of `examples.make_features`."""

    def make_processor(self, tokenizer):
        """The `EtcProcessor` that arranges texts for every model.

        Raises:
            ValueError: if the vocabulary lacks a token that is needed.
        """
        from etcmodel.text.processor import EtcProcessor

        lengths = {"max_long_len": self.long_seq_length, "max_global_len": self.global_seq_length}
        return EtcProcessor(tokenizer, pad_to="max", **lengths)
