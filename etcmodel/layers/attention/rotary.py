"""ModernBERT's attention: windows or all tokens, with rotary positions."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.layers.attention.relative import check_multiple
from etcmodel.layers.recomputing_dropout import RecomputingDropout
from etcmodel.ops import blockwise, rotary
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import KeyMask
from etcmodel.ops.reach import ALL, Window
from etcmodel.ops.shapes import get_shape_list

__all__ = ["RotaryAttention", "tokens_that_see"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RotaryAttention(base.Layer):
    """Attention to a window or to all tokens, with rotary positions and one joint projection.

    Source: Warner et al. 2024 (arXiv:2412.13663), as in Hugging Face's ModernBERT. Only keys are
    masked: a masked token attends to the unmasked ones within its reach. What sees none of them
    gets 0 before the output projection.

    Args:
        hidden_size: int. Size of input and output.
        num_heads: int.
        radius: int. Tokens attended to on each side; None for all tokens.
        use_bias: bool. Whether the projections have biases.
        att_dropout_prob: float. Dropout rate of attention probabilities and of the output.
        initializer_range: float. Standard deviation of the joint projection's initial weights.
        output_initializer_range: float. That of the output projection's.
        name: name of the layer.
    Call args:
        inputs: float [batch, length, hidden_size].
        turns: `ops.rotary.Turns`.
        token_mask: bool [batch, length] or None. True for tokens, False for padding.
        sees: bool [batch, length]; with `token_mask`. See `tokens_that_see`.
        rows: `ops.packing.PackedRows`, if the inputs are packed rows, or None.
        training: bool.
    Returns:
        float [batch, length, hidden_size].
    Raises:
        ValueError: if a number is out of range, or `hidden_size` is not a multiple of the number of
            heads.
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        radius=None,
        *,
        use_bias=False,
        att_dropout_prob=0.0,
        initializer_range=0.02,
        output_initializer_range=0.02,
        name="self_attention",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        base.check_at_least_1(hidden_size=hidden_size, num_heads=num_heads)
        base.check_rates(att_dropout_prob=att_dropout_prob)
        check_multiple(num_heads, hidden_size=hidden_size)
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.radius = radius
        self.use_bias = use_bias
        self.att_dropout_prob = att_dropout_prob
        self.initializer_range = initializer_range
        self.output_initializer_range = output_initializer_range
        self.qkv = self._dense("qkv", 3 * hidden_size, initializer_range)
        self.output_projection = self._dense("output", hidden_size, output_initializer_range)
        self.output_dropout = RecomputingDropout(
            att_dropout_prob, name="output_dropout", dtype=self.dtype_policy
        )

    def _dense(self, name, units, spread):
        return dense.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=initializers.default_initializer(spread),
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        sublayers.build_all(self.hidden_size, self.qkv, self.output_projection)
        super().build(input_shape)

    def call(self, inputs, turns, token_mask=None, sees=None, rows=None, training=None):
        (inputs,) = sublayers.cast_all(self, inputs)
        heads = rotary.turned_heads(self.qkv(inputs), turns, self.num_heads)
        rate = self.att_dropout_prob if training else 0.0
        if rows is not None and self.radius is None:
            attended = rows.attend_to_all(*heads, token_mask, dropout_rate=rate)
        else:
            queries, keys, values = heads
            masks = () if token_mask is None else (KeyMask(token_mask),)
            masks = masks if rows is None else (rows.mask(token_mask),)
            key_set = KeySet(keys, values, self._reach(get_shape_list(inputs)[1]), masks)
            attended = blockwise.attend(queries, [key_set], dropout_rate=rate)
        attended = tensor_utils.flatten_dims(attended, first_dim=-2)
        output = self.output_projection(attended)
        if token_mask is not None:  # After the projection, which thus keeps no copy of its input.
            of_zeros = self.output_projection.bias if self.use_bias else 0.0
            output = tf.where(sees[..., tf.newaxis], output, tf.cast(of_zeros, output.dtype))
        return self.output_dropout(output, training=training)

    def _reach(self, length):
        if self.radius is None:
            return ALL
        radius = min(self.radius, max(length - 1, 0)) if isinstance(length, int) else self.radius
        return Window(radius, radius)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "radius": self.radius,
            "use_bias": self.use_bias,
            "att_dropout_prob": self.att_dropout_prob,
            "initializer_range": self.initializer_range,
            "output_initializer_range": self.output_initializer_range,
        }


def tokens_that_see(token_mask, radius=None):
    """Marks the places within whose reach there is a token that is not masked.

    Args:
        token_mask: bool [batch, length].
        radius: int or None; see `RotaryAttention`.
    Returns:
        bool [batch, length].
    """
    if radius is None:
        return tf.reduce_any(token_mask, axis=1, keepdims=True) | tf.zeros_like(token_mask)
    length = get_shape_list(token_mask)[1]
    numbers = tf.pad(tf.cumsum(tf.cast(token_mask, tf.int32), axis=1), [[0, 0], [1, 0]])
    places = tf.range(length)
    before = tf.gather(numbers, tf.maximum(places - radius, 0), axis=1)
    return tf.gather(numbers, tf.minimum(places + radius + 1, length), axis=1) > before
