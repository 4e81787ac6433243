"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, WindowOptions, changed, option

__all__ = [
    "TokenClassificationConfig",
    "TokenClassificationFeatureOptions",
    "TokenClassificationInputConfig",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenClassificationFeatureOptions(WindowOptions):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(FeatureOptions, "long_seq_length")
    global_seq_length: int = changed(FeatureOptions, "global_seq_length")
    labels: tuple = option(
        (),
        "Tags, in the order of the model's outputs. None: preprocess collects and sorts them.",
        role="features",
    )
    words_field: str = option(
        "words",
        "Field with the words: a list, or a list of sentences, which are lists.",
        role="features",
    )
    tags_field: str = option(
        "tags", "Field with a tag for each word, in lists of the same lengths.", role="features"
    )
    id_field: str = option(
        "id",
        "Field with the example's id. Without it, the id is the file name and line number.",
        role="features",
    )
    word_column: int = option(
        0, "Column of the words in CoNLL's format, from 0; below 0, from the last.", role="features"
    )
    tag_column: int = option(
        -1, "Column of the tags in CoNLL's format, from 0; below 0, from the last.", role="features"
    )

    def __post_init__(self):
        super().__post_init__()
        if len(set(self.labels)) < len(self.labels) or not all(self.labels):
            raise ValueError(
                f"`labels` must be different, and not empty. Received: {list(self.labels)}"
            )
        if self.word_column == self.tag_column:
            raise ValueError(
                f"`word_column` and `tag_column` must differ. Received: {self.word_column} for both"
            )

    def check_labels(self):
        """Checks the labels; raises ValueError if there are too few."""
        if len(self.labels) < 2:
            raise ValueError(f"There must be at least 2 labels. Received: {list(self.labels)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenClassificationInputConfig(
    TokenClassificationFeatureOptions, finetuning.ProcessorFeatureOptions
):
    """Settings of `features.make_features`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenClassificationConfig(
    TokenClassificationFeatureOptions, options.PaddingOptions, finetuning.FinetuningConfig
):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "None: the records of --eval_data have the tags, too.",
        "input_file": "Raw file of the words to tag, in mode predict.",
        "predictions_file": "Where predictions go: a JSON object by id; or, if the name does not "
        "end in .json, CoNLL's columns of word, tag if it is known, and predicted tag. None: "
        "predictions.json in --output_dir.",
    }
    not_needed = ("eval_gold",)
    input_class = TokenClassificationInputConfig
    records_hold = "tags"
    not_of_evaluation = ("words_field", "tags_field", "id_field", "word_column", "tag_column")
