"""The format of the TFRecords of `preprocess`; masks are made inside the model."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range

from .config import MULTI_LABEL, REGRESSION

__all__ = ["RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.ProcessedRecordConfig):
    """The format that the records must have.

    Attributes:
        problem_type: str, one of `config.PROBLEM_TYPES`.
        labels: tuple of str.
    """

    problem_type: str
    labels: tuple = ()

    deciding_flags = ("problem_type", "labels_file")

    def ranges(self):
        if self.problem_type == REGRESSION:
            return super().ranges()
        is_multi_label = self.problem_type == MULTI_LABEL
        return {
            **super().ranges(),
            "labels": FLAG if is_multi_label else Range(0, len(self.labels)),
        }

    def label_features(self):
        if self.problem_type == REGRESSION:
            return {"labels": tf.io.FixedLenFeature([], tf.float32)}
        shape = [len(self.labels)] if self.problem_type == MULTI_LABEL else []
        return {"labels": finetuning.int_feature(*shape)}

    def decoding_features(self):
        return {"example_id": finetuning.string_feature(), **self.label_features()}
