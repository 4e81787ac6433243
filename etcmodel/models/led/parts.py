"""Shared parts of LED's encoder and decoder."""

import tensorflow as tf

from etcmodel.layers import (
    EmbeddingLookup,
    RecomputingDropout,
    feed_forward,
    normalization,
    sublayers,
)
from etcmodel.models.led.config import LedConfig
from etcmodel.models.seq2seq import inputs, token_stack
from etcmodel.ops import argument_checks

__all__ = ["LedStack", "make_feed_forward", "make_token_embedding", "stack_options"]


class LedStack(token_stack.TokenStack):
    """Embeddings of tokens and positions, layer normalization, and a stack of layers.

    Args:
        layers_class: class of the layers, created from the config.
        num_positions: str. The config's entry for the size of the table of positions.
        config: `LedConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with another stack.
        **kwargs: of the Keras layer.
    """

    def __init__(self, layers_class, num_positions, config, token_embedding=None, **kwargs):
        super().__init__(**kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = config = LedConfig.of(config)
        self.num_positions = num_positions
        policy = {"dtype": self.dtype_policy}
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.position_embedding = EmbeddingLookup(
            getattr(config, num_positions),
            config.d_model,
            initializer_range=config.init_std,
            name="position_embedding",
            **policy,
        )
        self.embedding_norm = normalization.LayerNormalization(
            axis=-1, epsilon=config.layer_norm_eps, name="embedding_norm", **policy
        )
        self.dropout = RecomputingDropout(config.dropout, name="dropout", **policy)
        self.layers = layers_class(config, **policy)

    def build(self, input_shape):
        ids = tf.TensorShape([None, None])
        hidden = tf.TensorShape([None, None, self.config.d_model])
        for layer, shape in (
            (self.token_embedding, ids),
            (self.position_embedding, ids),
            (self.embedding_norm, hidden),
            (self.layers, hidden),
        ):
            sublayers.build_sublayer(layer, shape)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None, position_ids=None):
        """Embeds ids for the first layer.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, d_model], or None.
            start: int or int32 scalar. The position of the first id.
            training: bool.
            position_ids: int [batch or 1, length], or None for consecutive ones.
        Returns:
            float [batch, length, d_model].
        Raises:
            ValueError: if there are more tokens than positions; in a graph
                `tf.errors.InvalidArgumentError`.
        """
        ids = None if ids is None else sublayers.as_ids(ids)
        hidden = inputs.embed(self.token_embedding, ids, embeddings)
        if position_ids is None:
            length = hidden.shape[1] if hidden.shape[1] is not None else tf.shape(hidden)[1]
            position_ids = (start + tf.range(length))[tf.newaxis]
        limit = getattr(self.config, self.num_positions)
        position_ids = argument_checks.in_range(
            "position_ids", position_ids, 0, limit, f"{limit}, which is `{self.num_positions}`"
        )
        positions = self.position_embedding(position_ids)
        hidden = self.embedding_norm(tf.cast(hidden, self.compute_dtype) + positions)
        return self.dropout(hidden, training=training)

    def finish(self, hidden, training=None):
        """Returns the output, here that of the layers unchanged."""
        del training
        return hidden


def make_token_embedding(layer):
    """Creates the token embeddings of a layer with an `LedConfig`."""
    return token_stack.make_token_embedding(layer, layer.config.init_std)


def stack_options(config):
    """Arguments of `TransformerStack` shared by encoder and decoder: dict."""
    return {
        "hidden_act": config.activation,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "initializer_range": config.init_std,
        "grad_checkpointing_period": config.grad_checkpointing_period,
        "layer_norm_epsilon": config.layer_norm_eps,
    }


def make_feed_forward(layers, stream):
    """Creates a feed-forward layer for a stack with an `LedConfig`."""
    return feed_forward.FeedForward(
        stream.hidden_size,
        stream.intermediate_size,
        layers.hidden_act,
        dropout_prob=layers.config.activation_dropout,
        initializer_range=layers.config.init_std,
        dtype=layers.dtype_policy,
    )
