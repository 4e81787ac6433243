"""GMAT's embeddings: tokens with their positions, and the memory (section 2 of the paper)."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import EmbeddingLookup, RecomputingDropout, base, normalization, sublayers
from etcmodel.models.gmat import config as config_lib

__all__ = ["GmatEmbeddings"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GmatEmbeddings(base.Layer):
    """The embeddings of a `GmatModel`; not called as a layer, but through its methods.

    Args:
        config: `GmatConfig` or its dict.
        name: name of the layer.
    """

    def __init__(self, config, name="embeddings", **kwargs):
        super().__init__(name=name, **kwargs)
        self._autocast = False
        self.config = (
            config_lib.GmatConfig.from_dict(config) if isinstance(config, dict) else config
        )
        self.word_embeddings = self._lookup("word_embeddings", self.config.vocab_size)
        self.position_embeddings = self._lookup("position_embeddings", self.config.position_period)
        self.quotient_embeddings = self.memory_embeddings = None
        if self.config.num_position_quotients:
            # Zeros, so that a model initialized from BERT or RoBERTa first computes what that one
            # does.
            self.quotient_embeddings = self._lookup(
                "quotient_embeddings", self.config.num_position_quotients, initializer_range=0.0
            )
        self.token_type_embeddings = self._lookup(
            "token_type_embeddings", self.config.type_vocab_size
        )
        if self.config.num_memory_tokens:
            self.memory_embeddings = self._lookup(
                "memory_embeddings", self.config.num_memory_tokens
            )
        self.layer_norm = normalization.LayerNormalization(
            axis=-1, epsilon=self.config.layer_norm_eps, name="layer_norm", dtype=self.dtype_policy
        )
        self.dropout = RecomputingDropout(
            self.config.hidden_dropout_prob, name="dropout", dtype=self.dtype_policy
        )

    def _lookup(self, name, num_rows, initializer_range=None):
        if initializer_range is None:
            initializer_range = self.config.initializer_range
        return EmbeddingLookup(
            num_rows,
            self.config.hidden_size,
            initializer_range=initializer_range,
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        for layer in (
            self.word_embeddings,
            self.position_embeddings,
            self.quotient_embeddings,
            self.token_type_embeddings,
            self.memory_embeddings,
        ):
            if layer is not None:
                sublayers.build_sublayer(layer, tf.TensorShape([None, None]))
        hidden = tf.TensorShape([None, None, self.config.hidden_size])
        sublayers.build_sublayer(self.layer_norm, hidden)
        super().build(input_shape)

    def positions(self, position_ids):
        """Position embeddings: float [..., hidden_size], of int [...]."""
        period = self.config.position_period
        vectors = self.position_embeddings(position_ids % period)
        if self.quotient_embeddings is not None:
            vectors += self.quotient_embeddings(position_ids // period)
        return vectors

    def tokens(self, inputs, training):
        """Token embeddings: float [batch, length, hidden_size].

        Args:
            inputs: `inputs.Inputs`.
            training: bool.
        """
        words = inputs.inputs_embeds
        words = self.word_embeddings(inputs.input_ids) if words is None else words
        hidden = tf.cast(words, self.compute_dtype) + self.positions(inputs.position_ids)
        hidden += self.token_type_embeddings(inputs.token_type_ids)
        return self.dropout(self.layer_norm(hidden), training=training)

    def memory(self, inputs, training):
        """Memory: float [batch, num_memory_tokens, hidden_size]; arguments as in `tokens`."""
        if inputs.memory_ids is None:
            numbers = tf.range(self.config.num_memory_tokens)[tf.newaxis]
            hidden = tf.repeat(self.memory_embeddings(numbers), inputs.batch, axis=0)
        else:
            hidden = self.word_embeddings(inputs.memory_ids)
        if self.config.memory_type_id is not None:
            hidden += self.token_type_embeddings([[self.config.memory_type_id]])
        if self.config.normalizes_memory:
            hidden = self.layer_norm(hidden)
        return self.dropout(hidden, training=training)

    def decompressor_input(self, inputs, training):
        """What replaces tokens: float [batch, length, hidden_size]; arguments as in `tokens`."""
        kind = self.config.decompressor_input
        hidden = self.positions(inputs.position_ids)
        if kind == config_lib.NORMALIZED_POSITIONS_AND_TYPES:
            hidden += self.token_type_embeddings(inputs.token_type_ids)
        if kind != config_lib.POSITIONS:
            hidden = self.layer_norm(hidden)
        _, length, size = tensor_utils.get_shape_list(hidden)
        hidden = tf.broadcast_to(hidden, [inputs.batch, length, size])
        return self.dropout(hidden, training=training)

    def call(self, inputs):
        raise NotImplementedError("Call `tokens`, `memory` or `positions`.")

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}
