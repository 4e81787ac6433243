"""The format of the TFRecords of `preprocess`."""

import dataclasses

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature, string_feature

from .examples import PADDING_LABEL

__all__ = ["RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have.

    Attributes:
        target_length: int.
    """

    target_length: int

    token_id_features = ("input_ids",)
    length_feature = "attention_mask"
    deciding_flags = ("summary_fields",)
    length_flags = ("long_seq_length", "target_length")

    def ranges(self):
        labels = Range(PADDING_LABEL, self.vocab_size, "-100, or an id of the model's vocabulary")
        return {**super().ranges(), "attention_mask": FLAG, "labels": labels}

    def model_features(self):
        names = ("input_ids", "attention_mask")
        return {name: int_feature(self.long_seq_length) for name in names}

    def label_features(self):
        return {"labels": int_feature(self.target_length)}

    def decoding_features(self):
        return {
            "example_id": string_feature(),
            "summary": string_feature(),
            "tokens_left_out": int_feature(),
        }
