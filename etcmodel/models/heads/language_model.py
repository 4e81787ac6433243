"""Masked language models."""

import tensorflow as tf

from etcmodel.layers import heads
from etcmodel.models.heads import base, losses
from etcmodel.ops import argument_checks

__all__ = ["EtcForMaskedLM"]


@base.register_head
class EtcForMaskedLM(base.HeadModel):
    """Masked language model, tied to the token embeddings (paper, section 3.5).

    Labels are int, shaped as the logits without their last axis: the ids of masked tokens, and -1
    elsewhere, which is ignored.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        **kwargs: of `HeadModel`.
    Call args:
        features: see `HeadModel`. Also, optionally, int [batch, num_predictions]
            `masked_positions`, from 0: only these tokens are predicted, which needs less memory.
    Returns:
        float32 [batch, long_len, vocab_size], or [batch, num_predictions, vocab_size]. Logits.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForMaskedLM(config)
    >>> model([[2, 4, 8, 3]]).shape
    TensorShape([1, 4, 128])
    >>> model({"token_ids": [[2, 4, 8, 3]], "masked_positions": [[1]]}).shape
    TensorShape([1, 1, 128])
    """

    head_type = "masked_lm"
    extra_axes = {"masked_positions": "batch num_predictions*"}

    def make_head(self):
        config = self.encoder.config
        self.language_model = heads.make_masked_lm(
            self.encoder.get_token_embedding_table(),
            config.hidden_size,
            activation=config.hidden_act,
            initializer_range=config.initializer_range,
        )

    def head(self, long_output, global_output, inputs, training):
        positions = inputs.extras.get("masked_positions")
        shape = tf.shape(long_output)[:2]
        if positions is None:
            positions = tf.broadcast_to(tf.range(shape[1]), shape)
        else:
            words = "the number of long tokens"
            positions = argument_checks.in_range("masked_positions", positions, 0, shape[1], words)
        hidden = self.dropout(long_output, training=training)
        return self.language_model(hidden, positions)

    def default_loss(self):
        return losses.SparseCrossentropy()

    def default_metrics(self):
        return [losses.SparseAccuracy()]
