"""Numerical reasoning as a task for `etcmodel.training`, and the format of its records."""

import dataclasses

import tensorflow as tf

from etcmodel import checkpoints, finetuning
from etcmodel.feature_checks import Range
from etcmodel.finetuning import int_feature
from etcmodel.models.gmat import GmatSeq2SeqConfig
from etcmodel.models.seq2seq.inputs import IGNORED_LABEL
from etcmodel.text import number_pieces

from . import examples, metrics, model
from .config import NumericalConfig

__all__ = ["NumericalConfig", "NumericalTask", "RecordConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.OneInputRecordConfig):
    """The format that the records must have.

    Attributes:
        max_answer_length: int.
    """

    max_answer_length: int

    task = "numerical_reasoning"
    length_flags = ("long_seq_length", "max_answer_length")

    def ranges(self):
        labels = Range(IGNORED_LABEL, self.vocab_size, "-100, or the ids of the model's vocabulary")
        return {**super().ranges(), "labels": labels}

    def label_features(self):
        return {"labels": int_feature(self.max_answer_length - 1)}


class NumericalTask(finetuning.KeyedLineTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `NumericalConfig`.
    """

    name = "numerical_reasoning"
    title = "numerical reasoning"
    config_class = NumericalConfig
    training_needs_labels = True
    best_metric = "exact_match"

    def make_model(self):
        start, end = number_pieces.start_and_end(self.tokenizer)
        config = GmatSeq2SeqConfig.of_encoder(
            self.config.model_config(), decoder_start_token_id=start, eos_token_id=end
        )
        return model.AnswerModel(
            config, self.config.max_answer_length, skip_padding=self.config.skip_padding
        )

    def initialize(self, model, init_checkpoint):
        """See `training.Task`; a `GmatModel` initializes both the encoder and the decoder."""
        checkpoints.initialize(model.generator.encoder.gmat, init_checkpoint)

    loss = staticmethod(model.loss)

    def loss_weight(self, features):
        return tf.math.count_nonzero(tf.not_equal(features["labels"], IGNORED_LABEL))

    read_examples = staticmethod(examples.read_examples)

    def line(self, output):
        return metrics.prediction(output, self.tokenizer)

    metrics = staticmethod(metrics.metrics)
