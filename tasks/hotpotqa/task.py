"""HotpotQA as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import json

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from . import examples, marks, metrics
from .config import ANSWER_TYPES, BIO_IDS, HotpotQaConfig, Kind
from .features import (
    DECODING_FEATURES,
    EDGE_FEATURES,
    GLOBAL_FEATURES,
    LONG_FEATURES,
    WORDS_FEATURE,
)

__all__ = ["HotpotQaConfig", "HotpotQaTask", "MarkedRecordConfig", "RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have.

    Attributes:
        answer_encoding_method: 'span' or 'bio'.
        num_word_edges: int. Maximum number of edges of each kind; 0 for none.
        needs_words: bool. Whether decoding needs the words of the long input's word pieces.
    """

    answer_encoding_method: str = "span"
    num_word_edges: int = 0
    needs_words: bool = False

    task = "hotpotqa"
    padding = dict.fromkeys(("long_sentence_ids", "long_paragraph_ids", *EDGE_FEATURES), -1)
    deciding_flags = ("is_training", "answer_encoding_method", "num_word_edges")
    length_flags = (*finetuning.RecordConfig.length_flags, "num_word_edges")

    def ranges(self):
        link = Range(-1, "global_token_ids", "-1, or the place of a global token")
        # The release's records may have positions beyond the input, which are not labels.
        place = Range(-1, None, "-1, or the place of a long token")
        return {
            **super().ranges(),
            "long_token_type_ids": self.token_type_range(),
            "global_token_type_ids": self.token_type_range(),
            "long_sentence_ids": link,
            "long_paragraph_ids": link,
            **dict.fromkeys(EDGE_FEATURES, link),
            "long_paragraph_breakpoints": FLAG,
            "global_paragraph_breakpoints": FLAG,
            "supporting_facts": FLAG,
            "answer_types": Range(-1, len(ANSWER_TYPES)),
            "answer_begins": place,
            "answer_ends": place,
            "answer_bio_ids": Range(-1, len(BIO_IDS)),
        }

    def model_features(self):
        edges = EDGE_FEATURES if self.num_word_edges else ()
        return {
            **{name: int_feature(self.long_seq_length) for name in LONG_FEATURES},
            **{name: int_feature(self.global_seq_length) for name in GLOBAL_FEATURES},
            **{name: int_feature(self.num_word_edges, 2) for name in edges},
        }

    def label_features(self):
        answer = (
            {"answer_bio_ids": int_feature(self.long_seq_length)}
            if self.answer_encoding_method == "bio"
            else {
                "answer_begins": int_feature(),
                "answer_ends": int_feature(),
            }
        )
        return {
            "supporting_facts": int_feature(self.global_seq_length),
            "answer_types": int_feature(),
            **answer,
        }

    def decoding_features(self):
        return {
            "unique_ids": tf.io.FixedLenFeature([], tf.string),
            **{name: int_feature(self.global_seq_length) for name in DECODING_FEATURES},
            **({WORDS_FEATURE: int_feature(self.long_seq_length)} if self.needs_words else {}),
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarkedRecordConfig(finetuning.RecordConfig):
    """The format of records of marked evidence: see `marks.make_features`."""

    task = "hotpotqa"
    token_id_features = ("token_ids",)
    length_feature = "kinds"
    padding = marks.PADDING
    deciding_flags = ("is_training", "evidence_as")

    def ranges(self):
        place = Range(-1, "token_ids", "-1, or the place of a token")
        return {
            **super().ranges(),
            "kinds": Range(0, len(Kind), "the kinds of tokens"),
            "supporting_facts": FLAG,
            "answer_types": Range(0, len(ANSWER_TYPES)),
            "answer_begins": place,
            "answer_ends": place,
            **dict.fromkeys(marks.DECODING_FEATURES, Range(-1, None, "-1, or a number")),
        }

    def model_features(self):
        return dict.fromkeys(marks.PADDING, int_feature(self.long_seq_length))

    def label_features(self):
        names = ("answer_types", "answer_begins", "answer_ends")
        own = {"supporting_facts": int_feature(self.long_seq_length)}
        return {**own, **dict.fromkeys(names, int_feature())}

    def decoding_features(self):
        own = dict.fromkeys(marks.DECODING_FEATURES, int_feature(self.long_seq_length))
        return {"unique_ids": finetuning.string_feature(), **own}


class HotpotQaTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `HotpotQaConfig`.
    """

    name = "hotpotqa"
    title = "HotpotQA"
    config_class = HotpotQaConfig
    best_metric = "joint_f1"
    other_metrics = dict.fromkeys(metrics.NAMES, True)

    def make_model(self):
        return self.config.form.make_model(self.config)

    def loss(self, outputs, features):
        return self.config.form.loss(outputs, features)

    read_examples = staticmethod(examples.read_examples)

    def decode(self, outputs, examples):
        return self.config.form.predict(self, outputs, examples)

    def metrics(self, examples, predictions):
        return {
            **metrics.metrics(examples, predictions),
            **metrics.exact_match_counts(examples, predictions),
        }

    def write_predictions(self, path, predictions):
        official = {name: predictions[name] for name in ("answer", "sp")}
        super().write_predictions(path, official)
        if "paragraphs" in predictions:  # What a second stage reads.
            lines = (
                json.dumps({"id": example_id, "paragraphs": scored}, ensure_ascii=False) + "\n"
                for example_id, scored in predictions["paragraphs"].items()
            )
            finetuning.write_text(f"{path.removesuffix('.json')}_paragraphs.jsonl", lines)

    def num_predictions(self, predictions):
        return len(predictions["answer"])
