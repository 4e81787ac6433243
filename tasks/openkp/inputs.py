"""The format of the TFRecords of `preprocess`; masks are made inside the model."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from .config import (
    FLOAT_FEATURES,
    FONT_FEATURES,
    FORMAT_VERSION,
    INDICATOR_FEATURES,
    MAX_KEY_PHRASES,
    NUM_FONT_IDS,
)

__all__ = ["RecordConfig"]

LONG_FEATURES = (
    "long_token_ids",
    "long_input_mask",
    "long_word_idx",
    "long_vdom_idx",
    "long_word_input_mask",
)
GLOBAL_FEATURES = ("global_token_ids", "global_input_mask")
LABEL_FEATURES = ("label_start_idx", "label_phrase_len")


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
