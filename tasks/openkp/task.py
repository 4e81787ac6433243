"""OpenKP as a task for `etcmodel.training`."""

import dataclasses

from etcmodel import finetuning

from . import decode, evaluate, examples, inputs, layout, loss, model
from .config import (
    DENSE_RANGES,
    INDICATOR_FEATURES,
    MAX_KEY_PHRASES,
    OpenKpInputConfig,
    VisualConfig,
)

__all__ = ["OpenKpConfig", "OpenKpTask"]


def _bound(name, place):
    """The option of the lowest (`place` 0) or highest (1) value of a dense feature."""
    which = ("Lowest", "Highest")[place]
    return finetuning.option(
        DENSE_RANGES[name][place], f"{which} value of {name}, in pixels.", role="model"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenKpConfig(finetuning.FinetuningConfig):
    """Everything about a run beside the training options; each field's help says what it means."""

    train_pattern: str | None = finetuning.option(
        None,
        "Training TFRecords of preprocess, wildcards allowed.",
        role="training",
        flag="input_tfrecord",
    )
    num_train_examples: int | None = finetuning.option(
        None, "Number of training records. None: they are counted.", role="training"
    )
    eval_pattern: str | None = finetuning.option(
        None,
        "TFRecords to evaluate on (preprocess with --is_training=false), wildcards allowed.",
        flag="eval_input_tfrecord",
    )
    gold_file: str | None = finetuning.option(
        None,
        "OpenKP JSONL with the key phrases of those pages (the VDOM may be missing).",
        flag="eval_text_example_path",
        is_file=True,
    )
    input_file: str | None = finetuning.option(
        None, "OpenKP JSONL of the pages to predict, in mode predict.", flag="predict_input_file"
    )
    predictions_file: str | None = finetuning.option(
        None,
        "Where predictions go, as the lines of the official submission. None: predictions.json in "
        "--output_dir.",
    )
    vocab_file: str | None = finetuning.option(
        None, "WordPiece vocabulary, one piece a line.", flag="bert_vocab_path", is_file=True
    )
    spm_model_file: str | None = finetuning.option(
        None,
        "SentencePiece model. If it is given, --bert_vocab_path is ignored.",
        flag="spm_model_path",
        is_file=True,
    )
    max_long_seq_length: int = finetuning.option(
        4096,
        "Length of the long input in tokens; that of the records.",
        role="model",
        flag="long_max_length",
        lower_bound=2,
    )
    max_global_seq_length: int = finetuning.option(
        512,
        "Length of the global input in tokens; that of the records.",
        role="model",
        flag="global_max_length",
        lower_bound=2,
    )
    url_max_code_points: int = finetuning.option(
        1000,
        "Length of a URL in the records, in characters.",
        role="features",
        flag="url_num_code_points",
        lower_bound=1,
    )
    fixed_block_len: int | None = finetuning.option(
        None,
        "Long tokens of each global token, in place of the VDOM; that of the records. Used when "
        "an exported model reads raw pages.",
        role="features",
        lower_bound=1,
    )
    kp_max_length: int = finetuning.option(
        5, "Words of the longest key phrase.", role="model", lower_bound=1
    )
    max_kp_predictions: int = finetuning.option(
        5, "Key phrases to predict for a page.", role="decoding", lower_bound=1
    )
    max_position_predictions: int = finetuning.option(
        100,
        "Best n-grams from which they are taken: the same phrase may occur more than once.",
        role="model",
        lower_bound=1,
    )
    eval_fraction_of_removed_examples: float = finetuning.option(
        0.0,
        "Share of all pages that are not in --eval_text_example_path: they count as found nothing "
        "of, in the metrics of an evaluation.",
        role="run",
        lower_bound=0.0,
    )
    num_labels: int = finetuning.option(
        MAX_KEY_PHRASES,
        "Key phrases of a page in the records; as in the data set.",
        lower_bound=1,
    )
    release_compatible: bool = finetuning.option(
        False,
        "Repeat the faults of the authors' release (see the README). The loss has some, too.",
        role="model",
    )
    label_occurrences: str = finetuning.option(
        "first",
        "What of a key phrase is learnt: its first occurrence, or the one with the highest logit "
        "(the paper's max loss).",
        role="training",
        choices=loss.LABEL_OCCURRENCES,
    )
    additive_smoothing_mass: float = finetuning.option(
        1e-4,
        "Probability that all n-grams share, beside the 1 of the labels.",
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
        "Dense layers after the projection of the dense visual features.",
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
        f"Indicators whose combination gets an embedding, of {', '.join(INDICATOR_FEATURES)}.",
        role="model",
    )

    def __post_init__(self):
        visual = self.visual()  # Refuses options outside their range.
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
                "The release has no --label_occurrences=max: see --release_compatible."
            )

    def visual(self):
        """How the visual features are given to the model."""
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
        return inputs.RecordConfig(
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            url_max_code_points=self.url_max_code_points,
            kp_max_length=self.kp_max_length,
            vocab_size=self.etc_config.vocab_size,
            use_visual_features=self.visual().is_used,
            label_occurrences=self.label_occurrences,
            num_labels=self.num_labels,
        )

    def features(self):
        """How raw pages become features, at inference."""
        return OpenKpInputConfig(
            long_max_length=self.max_long_seq_length,
            global_max_length=self.max_global_seq_length,
            url_max_code_points=self.url_max_code_points,
            fixed_block_len=self.fixed_block_len,
            kp_max_length=self.kp_max_length,
            is_training=False,
            release_compatible=self.release_compatible,
        )


class OpenKpTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Predictions are a dict of URL to list of phrases, the best first.

    Args:
        config: `OpenKpConfig`.
    """

    name = "openkp"
    title = "OpenKP"
    config_class = OpenKpConfig
    best_metric = "f1@3"
    decoding_needs_vocabulary = False

    def make_model(self):
        return model.OpenKpModel(
            self.config.etc_config,
            visual_config=self.config.visual(),
            kp_max_length=self.config.kp_max_length,
            max_position_predictions=self.config.max_position_predictions,
        )

    def loss(self, outputs, features):
        return loss.loss(
            outputs,
            features,
            label_occurrences=self.config.label_occurrences,
            additive_smoothing_mass=self.config.additive_smoothing_mass,
            release_compatible=self.config.release_compatible,
        )

    def read_examples(self, path, check=None):
        """By default without pages that have no record; a file to evaluate on needs no VDOM."""
        return examples.read_examples(path, check or self._check_scored)

    def _check_scored(self, page):
        if page.vdom is not None:
            layout.check_page(page, self.config.features())

    def decode(self, outputs, examples):
        return decode.predictions(
            outputs,
            {example.url: example.words for example in examples},
            self.config.max_kp_predictions,
            release_compatible=self.config.release_compatible,
        )

    def metrics(self, examples, predictions):
        found = evaluate.metrics(map(evaluate.TextExample.of, examples), predictions)
        share = 1 - self.config.eval_fraction_of_removed_examples
        return {name: value * share for name, value in found.items()}

    def write_predictions(self, path, predictions):
        lines = (decode.submission_line(*item) + "\n" for item in predictions.items())
        finetuning.write_text(path, lines)
