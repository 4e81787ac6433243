"""What the layers of LongT5's encoder and decoder have in common."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import feed_forward, initializers, normalization, stack
from etcmodel.models.longt5.config import LongT5Config

__all__ = ["OptionalInput", "T5Layers", "as_config"]


def as_config(config):
    """A `LongT5Config`, from one or its dict.

    Raises:
        ValueError: if it is neither.
    """
    if isinstance(config, dict):
        config = LongT5Config.from_dict(config)
    if not isinstance(config, LongT5Config):
        raise ValueError(f"`config` must be a `LongT5Config` or its dict. Received: {config!r}")
    return config


class T5Layers(stack.TransformerStack):
    """A stack of T5's residual blocks: `x + dropout(inner(rms_norm(x)))`.

    Args:
        config: `LongT5Config` or its dict.
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
        """Arguments by which all attention layers of T5 are made."""
        return {
            "hidden_size": self.config.d_model,
            "num_heads": self.config.num_heads,
            "size_per_head": self.config.d_kv,
            "scale": 1.0,
            "att_dropout_prob": self.attention_probs_dropout_prob,
            "dtype": self.dtype_policy,
        }

    def add_bias_table(self, name):
        """A table of biases of positions, shared by all layers: [num_buckets, num_heads]."""
        return self.add_weight(
            name=name,
            shape=(self.config.relative_attention_num_buckets, self.config.num_heads),
            initializer=initializers.default_initializer(self.config.initializer_range),
        )

    def get_config(self):
        return {**tf_keras.layers.Layer.get_config(self), "config": self.config.to_dict()}

    @staticmethod
    def table(variable):
        """A variable as a tensor, which gets its gradient through the arguments of layers."""
        return tf.convert_to_tensor(variable)


class OptionalInput:
    """Lets the first argument of a layer, which Keras wants, be left out."""

    def __call__(self, first=None, *args, **kwargs):
        name = self._call_spec.arg_names[0]
        return super().__call__(kwargs.pop(name, first), *args, **kwargs)
