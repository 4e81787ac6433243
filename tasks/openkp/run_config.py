"""The options of a run on OpenKP, besides the training options."""

import dataclasses

from etcmodel import finetuning, options

from .config import (
    DENSE_RANGES,
    INDICATOR_FEATURES,
    LABEL_OCCURRENCES,
    MAX_KEY_PHRASES,
    OpenKpFeatureOptions,
    OpenKpInputConfig,
    VisualConfig,
)

__all__ = ["OpenKpConfig"]


def _bound(name, place):
    """The option of the lowest (`place` 0) or highest (1) value of a dense feature."""
    which = ("Lowest", "Highest")[place]
    return finetuning.option(
        DENSE_RANGES[name][place], f"{which} value of {name}, in pixels.", role="model"
    )


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
    }

    not_of_evaluation = ("kp_max_length",)
    proposed_by_records = ("release_compatible",)

    release_compatible: bool = finetuning.changed(
        finetuning.FinetuningConfig,
        "release_compatible",
        help_text=(
            "Reproduce the bugs of the authors' release (see the README), including those of the "
            "loss."
        ),
        role="model",
    )
    max_kp_predictions: int = finetuning.option(
        5, "Number of key phrases to predict per page.", role="decoding", lower_bound=1
    )
    max_position_predictions: int = finetuning.option(
        100,
        "Number of best n-grams that the key phrases are chosen from; the same phrase may occur "
        "more than once.",
        role="model",
        lower_bound=1,
    )
    eval_fraction_of_removed_examples: float = finetuning.option(
        0.0,
        "Fraction of all pages that are missing from --eval_gold. The metrics count them as pages "
        "for which nothing was found.",
        role="run",
        lower_bound=0.0,
        group="evaluation",
    )
    num_labels: int = finetuning.option(
        MAX_KEY_PHRASES,
        "Maximum number of key phrases per page in the records, as in the data set.",
        lower_bound=1,
    )
    label_occurrences: str = finetuning.option(
        "first",
        "Which occurrence of a key phrase is the label: the first, or the one with the highest "
        "logit (the paper's max loss).",
        role="training",
        choices=LABEL_OCCURRENCES,
    )
    additive_smoothing_mass: float = finetuning.option(
        1e-4,
        "Label smoothing: probability mass spread over all n-grams, in addition to the 1 of the "
        "labels.",
        role="training",
        lower_bound=0.0,
    )
    use_visual_features_in_global: bool = finetuning.option(
        True, "Add visual features to the embeddings of the global input.", role="model"
    )
    use_visual_features_in_long: bool = finetuning.option(
        True, "Add visual features to the embeddings of the long input.", role="model"
    )
    extra_dense_feature_layers: int = finetuning.option(
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
    indicators_to_cross: tuple = finetuning.option(
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
        from . import inputs  # Imports TensorFlow, which takes seconds.

        return inputs.RecordConfig.of_run(self, use_visual_features=self.visual().is_used)

    def features(self):
        """The feature settings at inference."""
        return OpenKpInputConfig(**options.shared(OpenKpInputConfig, self), is_training=False)
