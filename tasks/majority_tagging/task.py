"""Majority tagging as a task for `etcmodel.training`, and the format of its records."""

import dataclasses

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.feature_checks import Range
from etcmodel.finetuning import int_feature

from . import examples, metrics, model
from .config import MajorityConfig
from .features import PADDING_TAG

__all__ = ["MajorityConfig", "MajorityTask", "RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.OneInputRecordConfig):
    """The format that the records must have.

    Attributes:
        pairs: int.
    """

    pairs: int

    task = "majority_tagging"

    def ranges(self):
        tags = Range(PADDING_TAG, 2 * self.pairs, "-1, or a tag less 1, below twice --pairs")
        return {**super().ranges(), "labels": tags}

    def label_features(self):
        return {"labels": int_feature(self.long_seq_length)}


class MajorityTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `MajorityConfig`.
    """

    name = "majority_tagging"
    title = "majority tagging"
    config_class = MajorityConfig
    # Exact match stays 0 for a long time, and may be high by chance for a constant answer.
    best_metric = "tag_accuracy"
    other_metrics = {"exact_match": True}
    decoding_needs_vocabulary = False

    def make_model(self):
        config = self.config
        return model.MajorityTagger(
            config.model_config(), num_labels=config.num_tags, skip_padding=config.skip_padding
        )

    loss = staticmethod(model.loss)

    def loss_weight(self, features):
        return tf.math.count_nonzero(tf.not_equal(features["labels"], PADDING_TAG))

    read_examples = staticmethod(examples.read_examples)
    line = staticmethod(metrics.prediction)
    metrics = staticmethod(metrics.metrics)
