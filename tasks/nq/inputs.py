"""The format of the TFRecords of `preprocess`; masks are made inside the model."""

import dataclasses

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from .config import ANSWER_TYPES

__all__ = ["PADDING", "RecordConfig"]

LONG_FEATURES = ("token_ids", "sentence_ids", "long_breakpoints")
GLOBAL_FEATURES = ("global_token_ids", "global_breakpoints")
LABELS = ("sa_start", "sa_end", "la_start", "la_end", "answer_type")
# The features of the model, and their padding values.
PADDING = {**dict.fromkeys((*LONG_FEATURES, *GLOBAL_FEATURES), 0), "sentence_ids": -1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have."""

    token_id_features = ("token_ids", "global_token_ids")
    int64_features = ("unique_ids",)
    padding = PADDING
    deciding_flags = ("long_seq_length", "global_seq_length")

    def ranges(self):
        place = Range(-1, "token_ids", "-1, or the place of a long token")
        return {
            **super().ranges(),
            "sentence_ids": Range(-1, "global_token_ids", "-1, or the place of a global token"),
            "long_breakpoints": FLAG,
            "global_breakpoints": FLAG,
            **dict.fromkeys(LABELS, place),
            "answer_type": Range(-1, len(ANSWER_TYPES)),
        }

    def model_features(self):
        return {
            **{name: int_feature(self.long_seq_length) for name in LONG_FEATURES},
            **{name: int_feature(self.global_seq_length) for name in GLOBAL_FEATURES},
        }

    def label_features(self):
        return {name: int_feature() for name in LABELS}

    def decoding_features(self):
        return {
            "unique_ids": int_feature(),
            "token_pos": int_feature(self.long_seq_length),
        }
