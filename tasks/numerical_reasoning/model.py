"""The model, which generates the answer token by token, and its loss."""

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.layers import sublayers
from etcmodel.models import padding
from etcmodel.models.gmat import GmatForConditionalGeneration
from etcmodel.models.seq2seq import inputs as seq2seq_inputs

__all__ = ["AnswerModel", "loss"]


class AnswerModel(tf_keras.Model):
    """A `GmatForConditionalGeneration` as a task's model.

    Args:
        config: `GmatSeq2SeqConfig`, with the tokens before and after an answer.
        max_answer_length: int. Maximum number of tokens to generate, including the start token.
        skip_padding: bool. Do not encode positions that are padding in the whole batch
            (`models.padding`).
    Call args:
        features: dict of int `input_ids` and `attention_mask` [batch, length], and in training
            `labels` [batch, answer_length].
        training: bool.
    Returns:
        dict: in training, float32 `logits` [batch, answer_length, vocab_size]; else int32
            `sequences` [batch, max_answer_length] from greedy search.
    """

    def __init__(
        self, config, max_answer_length, *, skip_padding=False, name="numerical_reasoning"
    ):
        super().__init__(name=name)
        self._autocast = False  # Features are ids.
        self.generator = GmatForConditionalGeneration(config)
        self.max_answer_length = max_answer_length
        self.skip_padding = skip_padding

    def build(self, input_shape=None):
        with tf.name_scope(self.name):
            sublayers.build_sublayer(self.generator, None)
        self.built = True

    @without_autograph
    def call(self, features, training=None):
        if self.skip_padding:
            features = padding.cut_text(features)
        ids, mask = features["input_ids"], features["attention_mask"]
        if training:
            outputs = self.generator(ids, mask, labels=features["labels"], training=True)
            return {"logits": outputs["logits"]}
        found = self.generator.generate(ids, mask, max_length=self.max_answer_length)
        sequences = found["sequences"]  # As long as the batch's longest.
        rest = self.max_answer_length - tf.shape(sequences)[1]
        pad_id = self.generator.config.pad_token_id
        sequences = tf.pad(sequences, [[0, 0], [0, rest]], constant_values=pad_id)
        return {"sequences": tf.ensure_shape(sequences, [None, self.max_answer_length])}


def loss(outputs, features):
    """Loss and accuracy: means over all tokens of the batch's answers, including end tokens.

    Args:
        outputs: dict of float32 `logits` [batch, answer_length, vocab_size].
        features: dict with int32 `labels` [batch, answer_length], -100 for padding.
    Returns:
        dict of float32 scalars: "loss", the cross entropy, and "train_accuracy" in [0, 1].
    """
    logits, labels = outputs["logits"], features["labels"]
    is_label = tf.cast(tf.not_equal(labels, seq2seq_inputs.IGNORED_LABEL), tf.float32)
    is_right = tf.cast(tf.equal(tf.argmax(logits, -1, labels.dtype), labels), tf.float32)
    num_right = tf.reduce_sum(is_right * is_label)
    return {
        "loss": seq2seq_inputs.loss(logits, labels),
        "train_accuracy": num_right / tf.reduce_sum(is_label),
    }
