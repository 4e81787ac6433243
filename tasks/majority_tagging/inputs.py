"""The format of the TFRecords of `preprocess`."""

import dataclasses

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from .features import PADDING_TAG

__all__ = ["RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have.

    Attributes:
        pairs: int.
    """

    pairs: int

    token_id_features = ("input_ids",)
    length_feature = "attention_mask"
    deciding_flags = ("input_pattern",)
    length_flags = ("long_seq_length",)

    def ranges(self):
        tags = Range(PADDING_TAG, 2 * self.pairs, "-1, or a tag less 1, below twice --pairs")
        return {**super().ranges(), "attention_mask": FLAG, "labels": tags}

    def model_features(self):
        names = ("input_ids", "attention_mask")
        return {name: int_feature(self.long_seq_length) for name in names}

    def label_features(self):
        return {"labels": int_feature(self.long_seq_length)}

    def decoding_features(self):
        return {"example_id": finetuning.string_feature()}
