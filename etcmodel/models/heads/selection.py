"""Sentence selection, and multiple choice."""

import typing

import tensorflow as tf

from etcmodel.layers import heads
from etcmodel.models import features as features_lib
from etcmodel.models import pooling as pooling_lib
from etcmodel.models.heads import base, losses
from etcmodel.ops import argument_checks

__all__ = ["EtcForMultipleChoice", "EtcForSentenceSelection", "sentence_logits"]


@tf.autograph.experimental.do_not_convert
def sentence_logits(layer, global_hidden, inputs):
    """Computes a logit per global token; `MASKED_LOGIT` for padding.

    Args:
        layer: `TokenLogits` with one output.
        global_hidden: float [batch, global_len, hidden_size].
        inputs: `features.EncoderInputs`.
    Returns:
        float32 [batch, global_len].
    Raises:
        ValueError: if there is no global token; if that is known only when a graph runs,
            `tf.errors.InvalidArgumentError`.
    """
    asserts = []
    length = tf.shape(global_hidden)[1]
    argument_checks.check(
        length > 0,
        "Sentences are scored by their global tokens: give `global_token_ids` or `links`, or a "
        "config with `global_block_length`. Received global_len:",
        length,
        asserts=asserts,
    )
    with tf.control_dependencies(asserts):
        return tf.where(inputs.global_mask, layer(global_hidden)[:, :, 0], heads.MASKED_LOGIT)


@base.register_head
class EtcForSentenceSelection(base.HeadModel):
    """Selects sentences by their global tokens, such as evidence, summary sentences or answers.

    Labels are 0/1 int [batch, global_len]; -1, as for padding, is ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        float32 [batch, global_len]. Logits, -1e9 for padding.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> processor = etcmodel.EtcProcessor("vocab.txt")
    >>> etcmodel.EtcForSentenceSelection(config)(processor("It is good. It is bad.")).shape
    TensorShape([1, 3])
    """

    head_type = "sentence_selection"

    def make_head(self):
        self.logits = self.token_logits(1)

    def head(self, long_output, global_output, inputs, training):
        hidden = self.dropout(global_output, training=training)
        return sentence_logits(self.logits, hidden, inputs)

    def default_loss(self):
        return losses.BinaryCrossentropy()

    def default_metrics(self):
        return [losses.BinaryAccuracy()]


@base.register_head
class EtcForMultipleChoice(base.HeadModel):
    """Multiple choice: scores the given answers, in one of two input formats.

    With `candidate_token_id`, all answers are in one input, each with a global token of that id
    (paper, section 4.2, "WikiHop"); labels are int [batch], the index of the correct answer's
    global token. Without it, each answer is in a separate input: features have shape [batch,
    num_choices, ...], and labels are int [batch], the index of the correct answer. Labels of -1 are
    ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        candidate_token_id: int or None.
        pooling: 'mean', 'first' or 'first_global': see `models.pooling.pool`. Only for separate
            inputs.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        float32 logits: [batch, global_len], -1e9 for tokens that are not candidates; or [batch,
        num_choices].

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForMultipleChoice(config)
    >>> model([[[2, 7, 3], [2, 8, 3]]]).shape  # One question, two answers.
    TensorShape([1, 2])
    """

    head_type = "multiple_choice"

    def __init__(
        self,
        encoder,
        *,
        candidate_token_id: int | None = None,
        pooling: typing.Literal[pooling_lib.OF_TEXTS] = "mean",
        **kwargs,
    ):
        own = {"candidate_token_id": candidate_token_id, "pooling": pooling}
        super().__init__(encoder, own=own, **kwargs)

    def make_head(self):
        self.logits = self.token_logits(1)

    def call(self, features, training=None):
        if self.candidate_token_id is not None:
            return super().call(features, training=training)
        if not hasattr(features, "items"):
            features = {"token_ids": features}
        features = {
            name: tf.convert_to_tensor(x)
            for name, x in features.items()
            if not features_lib.is_label(name)
        }
        for name, tensor in features.items():
            if tensor.shape.rank is not None and tensor.shape.rank < 3:
                argument_checks.fail(
                    f"`{name}` must have shape [batch, num_choices, ...], since there is no "
                    f"`candidate_token_id`. Received shape: {tensor.shape.as_list()}"
                )
        flat = {name: _joined(tensor) for name, tensor in features.items()}
        logits = super().call(flat, training=training)
        return tf.reshape(logits, [-1, tf.shape(next(iter(features.values())))[1]])

    def feature_shape(self, name):
        shape = super().feature_shape(name)
        return [None, *shape] if self.candidate_token_id is None else shape

    def head(self, long_output, global_output, inputs, training):
        if self.candidate_token_id is None:
            return self.logits(self.pooled(long_output, global_output, inputs, training))
        hidden = self.dropout(global_output, training=training)
        logits = sentence_logits(self.logits, hidden, inputs)
        global_ids = inputs.arguments["global_token_ids"]
        is_candidate = tf.equal(global_ids, self.candidate_token_id)
        return tf.where(is_candidate, logits, heads.MASKED_LOGIT)

    def default_loss(self):
        return losses.SparseCrossentropy()

    def default_metrics(self):
        return [losses.SparseAccuracy()]


def _joined(tensor):
    """Reshapes [batch, num_choices, ...] to [batch * num_choices, ...]."""
    return tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], 0))
