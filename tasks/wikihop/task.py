"""WikiHop as a task for `etcmodel.training`, and the format of its records."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import int_feature

from . import examples, marks, metrics, model
from .config import WikiHopConfig
from .features import GLOBAL_PADDING, LONG_PADDING

__all__ = ["MarkedRecordConfig", "RecordConfig", "WikiHopConfig", "WikiHopTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have.

    Attributes:
        measures_labels: bool. Whether evaluations compare with the answers in the records.
    """

    measures_labels: bool = False

    task = "wikihop"
    padding = {**LONG_PADDING, **GLOBAL_PADDING}
    deciding_flags = ("input_pattern", "dev_input_pattern")

    def ranges(self):
        link = Range(-1, "global_token_ids", "-1, or the place of a global token")
        return {
            **super().ranges(),
            "long_token_type_ids": self.token_type_range(),
            "global_token_type_ids": self.token_type_range(),
            "long_sentence_ids": link,
            "long_paragraph_ids": link,
            "l2g_linked_ids": link,
            "long_paragraph_breakpoints": FLAG,
            "global_paragraph_breakpoints": FLAG,
            "label_id": Range(0, "global_token_ids", "the place of a candidate, a whole number"),
            "is_real_example": FLAG,
        }

    def model_features(self):
        return {
            **{name: int_feature(self.long_seq_length) for name in LONG_PADDING},
            **{name: int_feature(self.global_seq_length) for name in GLOBAL_PADDING},
        }

    def label_features(self):
        return {
            "label_id": tf.io.FixedLenFeature([], tf.float32),  # As in the release's records.
            "is_real_example": int_feature(),
        }

    def decoding_features(self):
        labels = self.label_features() if self.measures_labels else {}
        # The release's padding examples have no id.
        example_id = tf.io.FixedLenFeature([], tf.string, default_value="")
        return {"example_id": example_id, **labels}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarkedRecordConfig(RecordConfig, finetuning.ProcessedRecordConfig):
    """The format of records of marked candidates, in chunks: see `marks.make_features`.

    Attributes:
        max_num_chunks: int.
    """

    max_num_chunks: int = 1

    padding = {**marks.LONG_PADDING, **marks.GLOBAL_PADDING}
    deciding_flags = (*RecordConfig.deciding_flags, "candidates_as")
    length_flags = (*RecordConfig.length_flags, "max_num_chunks")

    def ranges(self):
        place = Range(0, self.long_seq_length, "a place in the long input")
        return {**super().ranges(), "candidate_places": place}

    def model_features(self):
        shape = (self.max_num_chunks, self.long_seq_length)
        return {
            **{name: int_feature(*shape) for name in marks.LONG_PADDING},
            **{name: int_feature(self.global_seq_length) for name in marks.GLOBAL_PADDING},
        }


class WikiHopTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `WikiHopConfig`.
    """

    name = "wikihop"
    title = "WikiHop"
    config_class = WikiHopConfig
    best_metric = "accuracy"
    decoding_needs_vocabulary = False
    needs_gold = False  # The records contain the answers as well.

    def make_model(self):
        return self.config.form.make_model(self.config)

    def loss(self, outputs, features):
        return model.loss(outputs, features, label_smoothing=self.config.label_smoothing)

    def loss_weight(self, features):
        return tf.math.count_nonzero(features["is_real_example"])

    read_examples = staticmethod(examples.read_examples)

    def decode(self, outputs, examples):
        return metrics.predict(outputs, examples, release_compatible=self.config.release_compatible)

    metrics = staticmethod(metrics.metrics)

    def evaluate(self, predictions):
        if self.config.eval_gold:
            return super().evaluate(predictions)
        return metrics.record_metrics(predictions)  # There are no texts to predict.
