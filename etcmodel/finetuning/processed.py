"""Records of a processor's output: a long and a global input, and their links."""

import dataclasses

from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning.records import RecordConfig, int_feature
from etcmodel.models.processed_batches import GLOBAL_FEATURES, LONG_FEATURES

__all__ = ["ProcessedRecordConfig", "features_of_row"]


def features_of_row(batch, row=0):
    """The features of a record: dict of name to list of int.

    Args:
        batch: `text.encoding.ProcessedBatch`, padded to the records' lengths.
        row: int.

    >>> from etcmodel import finetuning
    >>> lengths = {"max_long_len": 6, "max_global_len": 3}
    >>> processor = etcmodel.EtcProcessor("vocab.txt", pad_to="max", **lengths)
    >>> finetuning.features_of_row(processor("Good!"))["token_ids"]
    [2, 91, 46, 3, 0, 0]
    """
    return {name: batch[name][row].tolist() for name in (*LONG_FEATURES, *GLOBAL_FEATURES)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessedRecordConfig(RecordConfig):
    """The format of records with `features_of_row`; a task's subclass adds labels and ids.

    >>> from etcmodel.tasks.classification.task import RecordConfig
    >>> kind = {"problem_type": "single_label_classification", "labels": ("neg", "pos")}
    >>> config = RecordConfig(long_seq_length=16, global_seq_length=4, vocab_size=128, **kind)
    >>> sorted(config.model_features())
    ['example_ids', 'global_example_ids', 'global_segment_ids', 'global_token_ids', 'links',
    'segment_ids', 'token_ids']
    """

    token_id_features = ("token_ids", "global_token_ids")
    length_feature = "example_ids"
    padding = {"links": -1}

    def ranges(self):
        return {
            **super().ranges(),
            "segment_ids": self.token_type_range(),
            "global_segment_ids": self.token_type_range(),
            "example_ids": FLAG,
            "global_example_ids": FLAG,
            "links": Range(-1, "global_token_ids", "-1, or the place of a global token"),
        }

    def model_features(self):
        return {
            **{name: int_feature(self.long_seq_length) for name in LONG_FEATURES},
            **{name: int_feature(self.global_seq_length) for name in GLOBAL_FEATURES},
        }
