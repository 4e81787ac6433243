"""The format of the TFRecords of `preprocess`; masks are made inside the model."""

import dataclasses

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import spans

__all__ = ["RecordConfig"]

_LABELS = ("labels/starts", "labels/ends")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.ProcessedRecordConfig):
    """The format that the records must have."""

    def ranges(self):
        place = Range(-1, None, "-1, or a character of the text")
        own = dict.fromkeys(_LABELS, FLAG) | dict.fromkeys(spans.WINDOW_PLACES, place)
        return {**super().ranges(), **own}

    def label_features(self):
        return dict.fromkeys(_LABELS, finetuning.int_feature(self.long_seq_length))

    def decoding_features(self):
        texts = ("question_id", "document", "text")
        return {
            **{name: finetuning.string_feature() for name in texts},
            "text_start": finetuning.int_feature(),
            **dict.fromkeys(spans.WINDOW_PLACES, finetuning.int_feature(self.long_seq_length)),
        }
