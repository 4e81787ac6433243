"""The format of the TFRecords of `preprocess`; masks are made inside the model."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from .layout import GLOBAL_PADDING, LONG_PADDING

__all__ = ["RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have.

    Attributes:
        measures_labels: bool. Whether evaluations compare with the answers in the records.
    """

    measures_labels: bool = False

    padding = {**LONG_PADDING, **GLOBAL_PADDING}
    deciding_flags = ("input_pattern", "dev_input_pattern")

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
            **{name: int_feature(self.long_seq_length) for name in LONG_PADDING},
            **{name: int_feature(self.global_seq_length) for name in GLOBAL_PADDING},
        }

    def label_features(self):
        return {
            "label_id": tf.io.FixedLenFeature([], tf.float32),  # As in the release's records.
            "is_real_example": int_feature(),
        }

    def decoding_features(self):
        labels = self.label_features() if self.measures_labels else {}
        # The release's padding examples have no id.
        example_id = tf.io.FixedLenFeature([], tf.string, default_value="")
        return {"example_id": example_id, **labels}
