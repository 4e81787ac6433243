"""What the TFRecords of `preprocess` hold; masks are made inside the model."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range

from .layout import GLOBAL_PADDING, LONG_PADDING

__all__ = ["RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """What the records must agree with."""

    padding = {**LONG_PADDING, **GLOBAL_PADDING}
    deciding_flags = ("input_train_json_filepath", "input_dev_json_filepath")
    length_flags = ("long_seq_len", "global_seq_len")

    def ranges(self):
        link = Range(-1, "global_token_ids", "-1, or the place of a global token")
        return {
            **super().ranges(),
            "long_token_type_ids": self.token_type_range(),
            "global_token_type_ids": self.token_type_range(),
            "long_sentence_ids": link,
            "long_paragraph_ids": link,
            "l2g_linked_ids": link,
            "long_paragraph_breakpoints": FLAG,
            "global_paragraph_breakpoints": FLAG,
            "label_id": Range(0, "global_token_ids", "the place of a candidate"),
            "is_real_example": FLAG,
        }

    def model_features(self):
        return {
            **{name: _ints(self.long_seq_length) for name in LONG_PADDING},
            **{name: _ints(self.global_seq_length) for name in GLOBAL_PADDING},
        }

    def label_features(self):
        return {
            "label_id": tf.io.FixedLenFeature([], tf.float32),  # As in the release's records.
            "is_real_example": tf.io.FixedLenFeature([], tf.int64),
        }

    def decoding_features(self):
        # The release's padding examples have none.
        return {"example_id": tf.io.FixedLenFeature([], tf.string, default_value="")}


def _ints(length):
    return tf.io.FixedLenFeature([length], tf.int64)
