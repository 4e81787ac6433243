"""What the encoder and the decoder of PEGASUS-X have in common."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import EmbeddingLookup, RecomputingDropout, feed_forward, stack
from etcmodel.ops.sinusoids import sinusoids

__all__ = ["PegasusXLayers", "embed", "make_dropout", "make_token_embedding"]

_EPSILON = 1e-5  # Of layer normalization; no entry of Hugging Face's config.


class PegasusXLayers(stack.TransformerStack):
    """A stack of residual blocks `x + dropout(inner(layer_norm(x)))`.

    Args:
        config: `PegasusXConfig`.
        side: "encoder" or "decoder", of which it has the sizes.
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
        """Arguments by which all attention layers are made."""
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.num_attention_heads,
            "att_dropout_prob": self.attention_probs_dropout_prob,
            "initializer_range": self.initializer_range,
            "dtype": self.dtype_policy,
        }

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}


def embed(layer, ids=None, embeddings=None, position_ids=None, training=None):
    """Tokens and their positions as hidden states: float [batch, length, d_model].

    Args:
        layer: with `config`, `token_embedding` and `dropout`.
        ids: int [batch, length], or None.
        embeddings: float [batch, length, d_model] in place of those of the ids, or None. They are
            not scaled.
        position_ids: int [batch or 1, length], or None for 0, 1, ….
        training: bool.
    Raises:
        ValueError: unless just one of ids and embeddings is given.
    """
    if (ids is None) == (embeddings is None):
        raise ValueError("Give ids, or embeddings in their place, and not both.")
    if embeddings is None:
        embeddings = layer.token_embedding(ids) * layer.config.embedding_scale
    hidden = tf.cast(embeddings, layer.compute_dtype)
    if position_ids is None:
        position_ids = tf.range(tensor_utils.get_shape_list(hidden)[1])[tf.newaxis]
    hidden += sinusoids(position_ids, layer.config.d_model, hidden.dtype)
    return layer.dropout(hidden, training=training)


def make_token_embedding(layer):
    """The token embeddings of a layer with a `PegasusXConfig`."""
    return EmbeddingLookup(
        layer.config.vocab_size,
        layer.config.d_model,
        initializer_range=layer.config.init_std,
        name="shared",
        dtype=layer.dtype_policy,
    )


def make_dropout(layer):
    """The dropout of the embeddings of a layer with a `PegasusXConfig`."""
    return RecomputingDropout(layer.config.dropout, name="dropout", dtype=layer.dtype_policy)
