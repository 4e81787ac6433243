"""Shared parts of LongT5's encoder and decoder."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import (
    RecomputingDropout,
    feed_forward,
    initializers,
    normalization,
    stack,
    sublayers,
)
from etcmodel.models.longt5.config import LongT5Config
from etcmodel.models.seq2seq import inputs, token_stack

__all__ = ["T5Layers", "T5Stack", "make_token_embedding"]


class T5Layers(stack.TransformerStack):
    """A stack of T5's residual blocks: `x + dropout(inner(rms_norm(x)))`.

    Args:
        config: `LongT5Config`.
        num_layers: int.
        **kwargs: of the Keras layer.
    """

    def __init__(self, config, num_layers, **kwargs):
        super().__init__(
            num_layers,
            config.num_heads,
            hidden_act=config.activation,
            hidden_dropout_prob=config.dropout_rate,
            attention_probs_dropout_prob=config.dropout_rate,
            initializer_range=config.initializer_range,
            use_pre_activation_order=True,
            grad_checkpointing_period=config.grad_checkpointing_period,
            layer_norm_epsilon=config.layer_norm_epsilon,
            **kwargs,
        )
        self.config = config

    @property
    def streams(self):
        return (stack.Stream("tokens", self.config.d_model, self.config.d_ff),)

    def make_normalization(self, name):
        epsilon = self.layer_norm_epsilon
        return normalization.RmsNormalization(epsilon, name=name, dtype=self.dtype_policy)

    def make_feed_forward(self, index, stream):
        del index
        return feed_forward.FeedForward(
            stream.hidden_size,
            stream.intermediate_size,
            self.hidden_act,
            is_gated=self.config.is_gated,
            use_bias=False,
            dropout_prob=self.hidden_dropout_prob,
            dtype=self.dtype_policy,
        )

    def attention_options(self):
        """Constructor arguments of all of T5's attention layers."""
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.config.num_heads,
            "size_per_head": self.config.d_kv,
            "scale": 1.0,
            "att_dropout_prob": self.attention_probs_dropout_prob,
            "dtype": self.dtype_policy,
        }

    def add_bias_table(self, name):
        """Adds a table of position biases, shared by all layers: [num_buckets, num_heads]."""
        return self.add_weight(
            name=name,
            shape=(self.config.relative_attention_num_buckets, self.config.num_heads),
            initializer=initializers.default_initializer(self.config.initializer_range),
        )

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}

    @staticmethod
    def table(variable):
        """Returns a variable as a tensor, so that its gradient flows through layers' arguments."""
        return tf.convert_to_tensor(variable)


class T5Stack(token_stack.TokenStack):
    """An encoder or a decoder: token embeddings, a stack of layers, a final normalization.

    Args:
        layers_class: class of the layers, created from the config.
        config: `LongT5Config` or its dict.
        token_embedding: `EmbeddingLookup` or None. A lookup shared with another stack.
        **kwargs: of the Keras layer.
    """

    def __init__(self, layers_class, config, token_embedding=None, **kwargs):
        super().__init__(**kwargs)
        self._autocast = False  # The first argument is ids.
        self.config = LongT5Config.of(config)
        self.token_embedding = token_embedding or make_token_embedding(self)
        self.dropout = RecomputingDropout(
            self.config.dropout_rate, name="dropout", dtype=self.dtype_policy
        )
        self.layers = layers_class(self.config, dtype=self.dtype_policy)
        self.final_layer_norm = self.layers.make_normalization("final_layer_norm")

    def build(self, input_shape):
        hidden = tf.TensorShape([None, None, self.config.d_model])
        sublayers.build_sublayer(self.token_embedding, tf.TensorShape([None, None]))
        sublayers.build_sublayer(self.layers, hidden)
        sublayers.build_sublayer(self.final_layer_norm, hidden)
        super().build(input_shape)

    def embed(self, ids, embeddings, start=0, training=None):
        """Embeds ids for the first layer: float [batch, length, d_model]; `start` has no effect."""
        del start
        hidden = inputs.embed(self.token_embedding, ids, embeddings)
        return self.dropout(tf.cast(hidden, self.compute_dtype), training=training)

    def finish(self, hidden, training=None):
        """Returns the output, from that of the layers."""
        return self.dropout(self.final_layer_norm(hidden), training=training)


def make_token_embedding(layer):
    """Creates the token embeddings of a layer with a `LongT5Config`."""
    return token_stack.make_token_embedding(layer, layer.config.initializer_factor)
