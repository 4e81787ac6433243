"""The options of OpenKP\'s features."""

import dataclasses

from etcmodel.options import FeatureOptions, Options, changed, option

__all__ = [
    "DENSE_RANGES",
    "FLOAT_FEATURES",
    "FONT_FEATURES",
    "FORMAT_VERSION",
    "INDICATOR_FEATURES",
    "LABEL_OCCURRENCES",
    "MAX_KEY_PHRASES",
    "NUM_FONT_IDS",
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
    """Settings of `examples.make_features`.

    Attributes:
        global_token_id: int. Token of every global position.
    """

    global_token_id: int = 1

    def check_vocabulary(self, tokenizer):
        """Checks that the vocabulary of `tokenizer` can be used.

        Raises:
            ValueError: names the vocabulary's file and what it lacks.
        """
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
