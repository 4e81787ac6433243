"""HotpotQA as a task for `etcmodel.training`, and the format of its records."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from . import examples, metrics, model
from .config import ANSWER_TYPES, BIO_IDS, HotpotQaConfig
from .features import (
    DECODING_FEATURES,
    EDGE_FEATURES,
    GLOBAL_FEATURES,
    LONG_FEATURES,
    WORDS_FEATURE,
)

__all__ = ["HotpotQaConfig", "HotpotQaTask", "RecordConfig"]


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


class HotpotQaTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `HotpotQaConfig`.
    """

    name = "hotpotqa"
    title = "HotpotQA"
    config_class = HotpotQaConfig
    best_metric = "joint_f1"

    def make_model(self):
        return model.HotpotQaModel(
            self.config.encoder_config,
            answer_encoding_method=self.config.answer_encoding_method,
            flat_sequence=self.config.flat_sequence,
            skip_padding=self.config.skip_padding,
        )

    def loss(self, outputs, features):
        return model.loss(outputs, features)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def decode(self, outputs, examples):
        return metrics.generate_predictions(
            outputs, examples, self.tokenizer, self.config.decoding()
        )

    def metrics(self, examples, predictions):
        return {
            **metrics.metrics(examples, predictions),
            **metrics.exact_match_counts(examples, predictions),
        }

    def num_predictions(self, predictions):
        return len(predictions["answer"])
