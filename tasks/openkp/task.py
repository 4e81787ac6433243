"""OpenKP as a task for `etcmodel.training`, and the format of its records."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from . import examples, features, metrics, model
from .config import (
    FLOAT_FEATURES,
    FONT_FEATURES,
    FORMAT_VERSION,
    INDICATOR_FEATURES,
    MAX_KEY_PHRASES,
    NUM_FONT_IDS,
    OpenKpConfig,
)
from .features import GLOBAL_FEATURES, LABEL_FEATURES, LONG_FEATURES

__all__ = ["OpenKpConfig", "OpenKpTask", "RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have.

    Attributes:
        url_max_code_points: int. Length of a URL, including padding.
        kp_max_length: int. Maximum number of words in a phrase.
        use_visual_features: bool. Whether the model uses them.
        num_labels: int. Number of key phrase slots per page.
        label_occurrences: 'first' or 'max', which needs the first occurrence of each phrase.
    """

    url_max_code_points: int = 1000
    kp_max_length: int = 5
    use_visual_features: bool = True
    label_occurrences: str = "first"
    num_labels: int = MAX_KEY_PHRASES

    task = "openkp"
    format_version = FORMAT_VERSION
    deciding_flags = ("fixed_block_len",)
    length_flags = (
        "long_seq_length",
        "global_seq_length",
        "url_max_code_points",
        "kp_max_length",
    )

    def ranges(self):
        # Labels beyond the input are ignored.
        label = Range(-1, None, "-1, or a number of words")
        word = Range(0, "long_token_ids", "the number of a word in the input")
        return {
            **super().ranges(),
            **dict.fromkeys(("long_input_mask", "long_word_input_mask", "global_input_mask"), FLAG),
            "long_word_idx": word,
            "long_vdom_idx": Range(0, "global_token_ids", "the place of a global token"),
            "long_word_first_occurrence": word,
            **dict.fromkeys(INDICATOR_FEATURES, FLAG),
            **dict.fromkeys(FONT_FEATURES, Range(0, NUM_FONT_IDS)),
            **dict.fromkeys(LABEL_FEATURES, label),
            "url_code_points": Range(-1, 0x110000, "-1, or a character's code point"),
        }

    def model_features(self):
        features = {name: int_feature(self.long_seq_length) for name in LONG_FEATURES}
        features |= {name: int_feature(self.global_seq_length) for name in GLOBAL_FEATURES}
        if self.use_visual_features:
            for name in INDICATOR_FEATURES + FONT_FEATURES:
                features[name] = int_feature(self.global_seq_length)
            for name in FLOAT_FEATURES:
                features[name] = tf.io.FixedLenFeature([self.global_seq_length], tf.float32)
        return features

    def label_features(self):
        features = {name: int_feature(self.num_labels) for name in LABEL_FEATURES}
        if self.label_occurrences == "max":
            features["long_word_first_occurrence"] = int_feature(
                self.kp_max_length * self.long_seq_length
            )
        return features

    def decoding_features(self):
        return {"url_code_points": int_feature(self.url_max_code_points)}


class OpenKpTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Predictions are a dict from URL to list of phrases, best first.

    Args:
        config: `OpenKpConfig`.
    """

    name = "openkp"
    title = "OpenKP"
    config_class = OpenKpConfig
    best_metric = "f1@3"
    other_metrics = dict.fromkeys(metrics.NAMES, True)
    decoding_needs_vocabulary = False

    def make_model(self):
        return model.OpenKpModel(
            self.config.encoder_config,
            visual_config=self.config.visual(),
            kp_max_length=self.config.kp_max_length,
            max_position_predictions=self.config.max_position_predictions,
            skip_padding=self.config.skip_padding,
        )

    def loss(self, outputs, features):
        return model.loss(
            outputs,
            features,
            label_occurrences=self.config.label_occurrences,
            additive_smoothing_mass=self.config.additive_smoothing_mass,
            release_compatible=self.config.release_compatible,
        )

    def read_examples(self, path, check=None):
        """By default, without pages that have no record; evaluation files need no VDOM."""
        return examples.read_examples(path, check or self._check_scored)

    def _check_scored(self, page):
        if page.vdom is not None:
            features.check_page(page, self.config.features())

    def decode(self, outputs, examples):
        return metrics.predictions(
            outputs,
            metrics.words_by_url(examples),
            self.config.max_kp_predictions,
            release_compatible=self.config.release_compatible,
        )

    def metrics(self, examples, predictions):
        removed = self.config.eval_fraction_of_removed_examples
        return metrics.metrics(map(metrics.TextExample.of, examples), predictions, removed)

    def write_predictions(self, path, predictions):
        lines = (metrics.submission_line(*item) + "\n" for item in predictions.items())
        finetuning.write_text(path, lines)
