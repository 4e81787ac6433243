"""ModernBERT's attention: windows or all tokens, with rotary positions, and global tokens."""

import dataclasses

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.layers.attention.qkv import QkvRelativeAttention
from etcmodel.layers.attention.relative import check_multiple
from etcmodel.layers.recomputing_dropout import RecomputingDropout
from etcmodel.ops import attention as attention_ops
from etcmodel.ops import blockwise, rotary
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import KeyMask, SegmentMask
from etcmodel.ops.reach import ALL, Window
from etcmodel.ops.shapes import get_shape_list


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
        return {**super().get_config(), **base.config_entries(self, __class__)}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GlobalRotaryAttention(RotaryAttention):
    """`RotaryAttention` with global tokens, which see all tokens and are seen by all, as in ETC.

    Long tokens attend to their window, or to all long tokens, and to all global tokens, in one
    softmax; global tokens attend to all tokens. A global token has no place in the text. So only
    the queries and keys of pairs of long tokens are turned by their positions; a pair with a global
    token has unturned ones, as if both had one place, and a label of relations as in ETC: a
    learned vector, added to the key, and a number. Both kinds of tokens have the same projections.

    Args:
        *args: of `RotaryAttention`.
        relative_vocab_size: int or None. Number of relative labels; None for no labels.
        **kwargs: of `RotaryAttention`.
    Call args:
        inputs: float [batch, long_len + global_len, hidden_size]. Long tokens come first.
        turns: `ops.rotary.Turns` of the long tokens.
        structure: `ops.structure.GlobalLocalStructure`. It must relate no long tokens to each
            other.
        training: bool.
    Returns:
        float [batch, long_len + global_len, hidden_size].
    Raises:
        ValueError: see `RotaryAttention`.
    """

    def __init__(self, *args, relative_vocab_size=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.relative_vocab_size = relative_vocab_size
        self.long_labels, self.global_labels = (
            QkvRelativeAttention(
                relative_vocab_size, self.att_dropout_prob, name=name, dtype=self.dtype_policy
            )
            for name in ("long_labels", "global_labels")
        )

    def build(self, input_shape):
        heads = [None, None, self.num_heads, self.hidden_size // self.num_heads]
        for labels in (self.long_labels, self.global_labels):
            sublayers.build_sublayer(labels, tf.TensorShape(heads))
        super().build(input_shape)

    def call(self, inputs, turns, structure, training=None):
        (inputs,) = sublayers.cast_all(self, inputs)
        long_len = get_shape_list(turns.cos)[1]
        long, global_ = (self.qkv(x) for x in (inputs[:, :long_len], inputs[:, long_len:]))
        queries, keys, values = rotary.turned_heads(long, turns, self.num_heads)
        plain_queries, plain_keys, _ = rotary.heads_of(long, self.num_heads)
        global_queries, *of_globals = rotary.heads_of(global_, self.num_heads)
        segments = structure.long_segment_ids
        masks = (SegmentMask(segments, segments),)
        labels = self.long_labels.labels(structure.has_labels)
        l2g = attention_ops.key_set_of(of_globals, structure.l2g(), labels)
        key_sets = [
            KeySet(keys, values, self._reach(long_len), masks),
            dataclasses.replace(l2g, queries=plain_queries),
        ]
        attended = [
            blockwise.attend(
                queries, key_sets, dropout_rate=self.long_labels.dropout_rate(training)
            ),
            self.global_labels.attend_by_structure(
                global_queries, of_globals, (plain_keys, values), structure, training
            ),
        ]
        attended = tensor_utils.flatten_dims(tf.concat(attended, axis=1), first_dim=-2)
        return self.output_dropout(self.output_projection(attended), training=training)

    def get_config(self):
        return {**super().get_config(), "relative_vocab_size": self.relative_vocab_size}


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
