"""Shared parts of PEGASUS-X's encoder and decoder."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import (
    RecomputingDropout,
    feed_forward,
    stack,
    sublayers,
)
from etcmodel.models.pegasus_x.config import PegasusXConfig
from etcmodel.models.seq2seq import inputs, token_stack
from etcmodel.ops.sinusoids import sinusoids

__all__ = ["PegasusXLayers", "PegasusXStack", "make_token_embedding"]

_EPSILON = 1e-5  # Of layer normalization; not in Hugging Face's config.


class PegasusXLayers(stack.TransformerStack):
    """A stack of residual blocks `x + dropout(inner(layer_norm(x)))`.

    Args:
        config: `PegasusXConfig`.
        side: "encoder" or "decoder", which decides the sizes.
        **kwargs: of the Keras layer.
    """

    def __init__(self, config, side, **kwargs):
        self.config = config
        self._sizes = {
            name: getattr(config, f"{side}_{name}")
            for name in ("layers", "attention_heads", "ffn_dim")
        }
        super().__init__(
            self._sizes["layers"],
            self._sizes["attention_heads"],
            hidden_act=config.activation,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.attention_dropout,
            initializer_range=config.init_std,
            use_pre_activation_order=True,
            grad_checkpointing_period=config.grad_checkpointing_period,
            layer_norm_epsilon=_EPSILON,
            **kwargs,
        )

    def stream(self, name):
        """A `Stream` of the side's sizes."""
        return stack.Stream(name, self.config.d_model, self._sizes["ffn_dim"])

    def make_feed_forward(self, index, stream):
        del index
        return feed_forward.FeedForward(
            stream.hidden_size,
            stream.intermediate_size,
            self.hidden_act,
            dropout_prob=self.config.activation_dropout,
            initializer_range=self.initializer_range,
            dtype=self.dtype_policy,
        )

    def attention_options(self):
        """Constructor arguments of all attention layers."""
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.num_attention_heads,
            "att_dropout_prob": self.attention_probs_dropout_prob,
            "initializer_range": self.initializer_range,
            "dtype": self.dtype_policy,
        }

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


class PegasusXStack(token_stack.TokenStack):
    """Embeddings of tokens and positions, a stack of layers, a final normalization.

    Args:
        layers_class: class of the layers, created from the config.
        config: `PegasusXConfig` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with another stack.
        **kwargs: of the Keras layer.
    """

    def __init__(self, layers_class, config, token_embedding=None, **kwargs):
        super().__init__(**kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = PegasusXConfig.of(config)
        policy = {"dtype": self.dtype_policy}
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.dropout = RecomputingDropout(self.config.dropout, name="dropout", **policy)
        self.layers = layers_class(self.config, **policy)
        self.layer_norm = self.layers.make_normalization("layer_norm")

    def build(self, input_shape):
        hidden = tf.TensorShape([None, None, self.config.d_model])
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        sublayers.build_sublayer(self.layers, hidden)
        sublayers.build_sublayer(self.layer_norm, hidden)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None, position_ids=None):
        """Embeds ids for the first layer.

        Args:
            ids: int [batch, length], or None with embeddings.
            embeddings: float [batch, length, d_model], or None. Used without scaling.
            start: int or int32 scalar. The position of the first id.
            training: bool.
            position_ids: int [batch or 1, length], or None for consecutive ones.
        Returns:
            float [batch, length, d_model].
        """
        hidden = inputs.embed(self.token_embedding, ids, embeddings)
        hidden = tf.cast(hidden, self.compute_dtype)
        if embeddings is None:
            hidden *= self.config.embedding_scale
        if position_ids is None:
            position_ids = (start + tf.range(tensor_utils.get_shape_list(hidden)[1]))[tf.newaxis]
        hidden += sinusoids(position_ids, self.config.d_model, hidden.dtype)
        return self.dropout(hidden, training=training)

    def finish(self, hidden, training=None):
        """Returns the output, from that of the layers."""
        del training
        return self.layer_norm(hidden)


def make_token_embedding(layer):
    """Creates the token embeddings of a layer with a `PegasusXConfig`."""
    return token_stack.make_token_embedding(layer, layer.config.init_std)
