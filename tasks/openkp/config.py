"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, Options, changed, option
from etcmodel.text import vocabulary_files

__all__ = [
    "DENSE_RANGES",
    "FLOAT_FEATURES",
    "FONT_FEATURES",
    "FORMAT_VERSION",
    "INDICATOR_FEATURES",
    "LABEL_OCCURRENCES",
    "MAX_KEY_PHRASES",
    "NUM_FONT_IDS",
    "OpenKpConfig",
    "OpenKpExampleOptions",
    "OpenKpFeatureOptions",
    "OpenKpInputConfig",
    "VisualConfig",
]

MAX_KEY_PHRASES = 3  # The maximum per page in the dataset.
FORMAT_VERSION = 2  # Of records. 1 split words at any white space and kept font sizes.
NUM_FONT_IDS = 24
LABEL_OCCURRENCES = ("first", "max")

# Visual features of a VDOM element, in the order of the model's inputs.
FLOAT_FEATURES = (
    "global_x_coords",
    "global_y_coords",
    "global_widths",
    "global_heights",
    "global_parent_x_coords",
    "global_parent_y_coords",
    "global_parent_widths",
    "global_parent_heights",
)
INDICATOR_FEATURES = (
    "global_block_indicator",
    "global_inline_indicator",
    "global_heading_indicator",
    "global_leaf_indicator",
    "global_bold_indicator",
    "global_parent_heading_indicator",
    "global_parent_leaf_indicator",
    "global_parent_bold_indicator",
)
FONT_FEATURES = ("global_font_ids", "global_parent_font_ids")

# Lowest and highest value, in pixels, of the float features of an element and of its parent.
DENSE_RANGES = {
    "x_coords": (-50.0, 1500.0),
    "y_coords": (-50.0, 6000.0),
    "widths": (0.0, 1500.0),
    "heights": (0.0, 18000.0),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenKpFeatureOptions(Options):
    """Options that features, records and model must agree on."""

    aliases = {
        "long_max_length": "long_seq_length",
        "global_max_length": "global_seq_length",
    }

    long_seq_length: int = changed(FeatureOptions, "long_seq_length", lower_bound=1)
    global_seq_length: int = changed(
        FeatureOptions, "global_seq_length", default=512, lower_bound=1
    )
    url_max_code_points: int = option(
        1000,
        "Maximum length of a URL, in characters; the URL identifies a record.",
        role="features",
        lower_bound=1,
    )
    fixed_block_len: int | None = option(
        None,
        "Number of long tokens per global token, in place of the VDOM and its visual features. "
        "None: one global token per element.",
        role="features",
        lower_bound=1,
    )
    kp_max_length: int = option(
        5, "Maximum length of a predicted key phrase, in words.", role="features", lower_bound=1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenKpExampleOptions(OpenKpFeatureOptions):
    """Further options of preprocessing."""

    is_training: bool | None = option(
        True,
        "Whether to drop pages that cannot be trained on. None: drop only those that have key "
        "phrases, as in the release.",
        role="features",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenKpInputConfig(OpenKpExampleOptions, FeatureOptions):
    """Settings of `features.make_features`.

    Attributes:
        global_token_id: int. Token of every global position.
    """

    global_token_id: int = 1

    def check_vocabulary(self, tokenizer):
        """Checks that the vocabulary of `tokenizer` can be used.

        Raises:
            ValueError: names the vocabulary's file and what it lacks, or what to give instead.
        """
        vocabulary_files.require_pieces(tokenizer)
        if not tokenizer.sp_model:
            tokenizer.require_tokens(["[PAD]", "[UNK]"])
        if self.global_token_id >= len(tokenizer.vocab):
            raise ValueError(
                f"`global_token_id` must be an id of the vocabulary {str(tokenizer.source_file)!r},"
                f" which has {len(tokenizer.vocab)} tokens. Received: {self.global_token_id}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisualConfig:
    """How the model uses the visual features.

    Attributes:
        use_in_long, use_in_global: bool. Add them to the embeddings of the long tokens of an
            element, and to that of its global token.
        ranges: dict, as in `DENSE_RANGES`. Float features are clipped to these ranges and scaled to
            [-1, 1].
        indicators_to_cross: tuple of `INDICATOR_FEATURES`. Their combination gets an embedding; the
            others are dense features.
        num_extra_dense_layers: int. Number of dense layers after the projection of the dense
            features.
    """

    use_in_long: bool = True
    use_in_global: bool = True
    ranges: dict = dataclasses.field(default_factory=lambda: dict(DENSE_RANGES))
    indicators_to_cross: tuple = (
        "global_block_indicator",
        "global_heading_indicator",
        "global_bold_indicator",
    )
    num_extra_dense_layers: int = 1

    def __post_init__(self):
        if set(self.ranges) != set(DENSE_RANGES):
            raise ValueError(
                f"`ranges` must have the keys {sorted(DENSE_RANGES)}. Received: {self.ranges}"
            )
        for name, (low, high) in self.ranges.items():
            if not low < high:
                raise ValueError(
                    f"The lowest value of `{name}` must be below the highest. "
                    f"Received: {name}_min={low}, {name}_max={high}"
                )
        unknown = [name for name in self.indicators_to_cross if name not in INDICATOR_FEATURES]
        if unknown or not self.indicators_to_cross:
            raise ValueError(
                "`indicators_to_cross` must name one or more of "
                f"{', '.join(INDICATOR_FEATURES)}. Received: {list(self.indicators_to_cross)}"
            )
        if len(set(self.indicators_to_cross)) < len(self.indicators_to_cross):
            raise ValueError(
                "`indicators_to_cross` must not name an indicator twice. "
                f"Received: {list(self.indicators_to_cross)}"
            )
        if self.num_extra_dense_layers < 0:
            raise ValueError(
                "`num_extra_dense_layers` must not be negative. "
                f"Received: {self.num_extra_dense_layers}"
            )

    @property
    def is_used(self):
        """Whether the model uses visual features."""
        return self.use_in_long or self.use_in_global


def _bound(name, place):
    """The option of the lowest (`place` 0) or highest (1) value of a dense feature."""
    which = ("Lowest", "Highest")[place]
    return option(DENSE_RANGES[name][place], f"{which} value of {name}, in pixels.", role="model")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenKpConfig(OpenKpFeatureOptions, options.PaddingOptions, finetuning.FinetuningConfig):
    """The options of a run besides the training options; the help of each field describes it."""

    aliases = {
        "input_tfrecord": "train_data",
        "eval_input_tfrecord": "eval_data",
        "eval_text_example_path": "eval_gold",
        "predict_text_example_path": "eval_gold",
        "predict_input_file": "input_file",
        "bert_vocab_path": "vocab_file",
        "spm_model_path": "spm_model_file",
        "url_num_code_points": "url_max_code_points",
    }
    help_texts = {
        "eval_gold": "OpenKP JSONL with the key phrases of the pages to evaluate on (the VDOM may "
        "be missing).",
        "input_file": "OpenKP JSONL of the pages to predict, in mode predict.",
        "predictions_file": "Where predictions go, as the lines of the official submission. None: "
        "predictions.json in --output_dir.",
        "vocab_file": options.WORD_PIECES,
    }
    input_class = OpenKpInputConfig

    not_of_evaluation = ("kp_max_length",)
    proposed_by_records = ("release_compatible",)

    release_compatible: bool = changed(
        finetuning.FinetuningConfig,
        "release_compatible",
        help_text=(
            "Reproduce the bugs of the authors' release (see the README), including those of the "
            "loss."
        ),
        role="model",
    )
    max_kp_predictions: int = option(
        5, "Number of key phrases to predict per page.", role="decoding", lower_bound=1
    )
    max_position_predictions: int = option(
        100,
        "Number of best n-grams that the key phrases are chosen from; the same phrase may occur "
        "more than once.",
        role="model",
        lower_bound=1,
    )
    eval_fraction_of_removed_examples: float = option(
        0.0,
        "Fraction of all pages that are missing from --eval_gold. The metrics count them as pages "
        "for which nothing was found.",
        role="run",
        lower_bound=0.0,
        group="evaluation",
    )
    num_labels: int = option(
        MAX_KEY_PHRASES,
        "Maximum number of key phrases per page in the records, as in the data set.",
        lower_bound=1,
    )
    label_occurrences: str = option(
        "first",
        "Which occurrence of a key phrase is the label: the first, or the one with the highest "
        "logit (the paper's max loss).",
        role="training",
        choices=LABEL_OCCURRENCES,
    )
    additive_smoothing_mass: float = option(
        1e-4,
        "Label smoothing: probability mass spread over all n-grams, in addition to the 1 of the "
        "labels.",
        role="training",
        lower_bound=0.0,
    )
    use_visual_features_in_global: bool = option(
        True, "Add visual features to the embeddings of the global input.", role="model"
    )
    use_visual_features_in_long: bool = option(
        True, "Add visual features to the embeddings of the long input.", role="model"
    )
    extra_dense_feature_layers: int = option(
        1,
        "Number of dense layers after the projection of the dense visual features.",
        role="model",
        lower_bound=0,
    )
    x_coords_min: float = _bound("x_coords", 0)
    x_coords_max: float = _bound("x_coords", 1)
    y_coords_min: float = _bound("y_coords", 0)
    y_coords_max: float = _bound("y_coords", 1)
    widths_min: float = _bound("widths", 0)
    widths_max: float = _bound("widths", 1)
    heights_min: float = _bound("heights", 0)
    heights_max: float = _bound("heights", 1)
    indicators_to_cross: tuple = option(
        VisualConfig.indicators_to_cross,
        f"Indicators whose combination gets an embedding: any of {', '.join(INDICATOR_FEATURES)}.",
        role="model",
    )

    def __post_init__(self):
        super().__post_init__()
        visual = self.visual()  # Rejects options out of range.
        if self.eval_fraction_of_removed_examples >= 1:
            raise ValueError(
                "`eval_fraction_of_removed_examples` must be in [0, 1). "
                f"Received: {self.eval_fraction_of_removed_examples}"
            )
        if self.fixed_block_len and visual.is_used:
            raise ValueError(
                "Fixed blocks have no visual features: --fixed_block_len needs "
                "--use_visual_features_in_global=false and --use_visual_features_in_long=false."
            )
        if self.release_compatible and self.label_occurrences == "max":
            raise ValueError(
                "The release has no --label_occurrences=max. Give --release_compatible=false, too."
            )

    def visual(self):
        """How the model uses the visual features."""
        return VisualConfig(
            use_in_long=self.use_visual_features_in_long,
            use_in_global=self.use_visual_features_in_global,
            ranges={
                name: (getattr(self, f"{name}_min"), getattr(self, f"{name}_max"))
                for name in DENSE_RANGES
            },
            indicators_to_cross=self.indicators_to_cross,
            num_extra_dense_layers=self.extra_dense_feature_layers,
        )

    def records(self):
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.RecordConfig.of_run(self, use_visual_features=self.visual().is_used)
