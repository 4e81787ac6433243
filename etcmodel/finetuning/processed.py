"""Records of what a processor arranges: a long and a global input, and how they are linked."""

import dataclasses

from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning.records import RecordConfig, int_feature

__all__ = ["ProcessedRecordConfig", "features_of_row"]

_LONG = ("token_ids", "segment_ids", "example_ids", "links")
_GLOBAL = ("global_token_ids", "global_segment_ids", "global_example_ids")


def features_of_row(batch, row=0):
    """The features of a record: dict of name to list of int.

    Args:
        batch: `text.encoding.ProcessedBatch`, padded to the records' lengths.
        row: int.
    """
    return {name: batch[name][row].tolist() for name in (*_LONG, *_GLOBAL)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessedRecordConfig(RecordConfig):
    """The format of records with `features_of_row`; a task's subclass adds labels and ids."""

    token_id_features = ("token_ids", "global_token_ids")
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
            **{name: int_feature(self.long_seq_length) for name in _LONG},
            **{name: int_feature(self.global_seq_length) for name in _GLOBAL},
        }
