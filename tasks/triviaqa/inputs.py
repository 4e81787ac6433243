"""What the TFRecords of `preprocess` hold; masks are made inside the model."""

import dataclasses

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range

__all__ = ["RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.ProcessedRecordConfig):
    """What the records must agree with."""

    def ranges(self):
        place = Range(-1, None, "-1, or a character of the text")
        return {
            **super().ranges(),
            **dict.fromkeys(("labels/starts", "labels/ends"), FLAG),
            **dict.fromkeys(("token_starts", "token_ends"), place),
        }

    def label_features(self):
        names = ("labels/starts", "labels/ends")
        return {name: finetuning.int_feature(self.long_seq_length) for name in names}

    def decoding_features(self):
        texts = ("question_id", "document", "text")
        places = ("token_starts", "token_ends")
        return {
            **{name: finetuning.string_feature() for name in texts},
            **{name: finetuning.int_feature(self.long_seq_length) for name in places},
        }
