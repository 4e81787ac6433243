"""The format of the TFRecords of `preprocess`."""

import dataclasses

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature
from etcmodel.models.seq2seq.labels import IGNORED_LABEL

__all__ = ["RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have.

    Attributes:
        max_answer_length: int.
    """

    max_answer_length: int

    token_id_features = ("input_ids",)
    length_feature = "attention_mask"
    deciding_flags = ("input_pattern",)
    length_flags = ("long_seq_length", "max_answer_length")

    def ranges(self):
        labels = Range(IGNORED_LABEL, self.vocab_size, "-100, or the ids of the model's vocabulary")
        return {**super().ranges(), "attention_mask": FLAG, "labels": labels}

    def model_features(self):
        names = ("input_ids", "attention_mask")
        return {name: int_feature(self.long_seq_length) for name in names}

    def label_features(self):
        return {"labels": int_feature(self.max_answer_length - 1)}

    def decoding_features(self):
        return {"example_id": finetuning.string_feature()}
