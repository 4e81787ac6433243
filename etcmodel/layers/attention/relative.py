"""Multi-head attention with relative labels and projections."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.layers.attention.qkv import QkvRelativeAttention
from etcmodel.ops import argument_checks

_AXES = {
    "from_seq": "batch from_len from_size",
    "to_seq": "batch to_len to_size",
    "att_mask": "batch? from_len to_len",
    "relative_att_ids": "batch from_len to_len",
}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class ProjectAttentionHeads(base.Layer):
    """Projects the last axis to attention heads.

    Args:
        num_heads: int.
        size_per_head: int.
        use_bias: bool.
        initializer: initializer of the kernel; by default truncated normal, 0.02.
        name: name of the layer.
    Call args:
        inputs: float [..., input_size].
    Returns:
        float [..., num_heads, size_per_head].
    Raises:
        ValueError: if a size is below 1.

    >>> from etcmodel import layers
    >>> layers.ProjectAttentionHeads(num_heads=2, size_per_head=4)(tf.zeros([1, 6, 8])).shape
    TensorShape([1, 6, 2, 4])
    """

    def __init__(
        self,
        num_heads,
        size_per_head,
        use_bias=True,
        initializer=None,
        name="attention_head_projection",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        base.check_at_least_1(num_heads=num_heads, size_per_head=size_per_head)
        self.num_heads = num_heads
        self.size_per_head = size_per_head
        self.use_bias = use_bias
        self.initializer = initializers.as_initializer(initializer)
        self.linear = dense.Dense(
            num_heads * size_per_head,
            use_bias=use_bias,
            kernel_initializer=initializers.fresh_or_default(self.initializer),
            name="linear",
            dtype=self.dtype_policy,
        )

    def build(self, input_shape):
        sublayers.build_sublayer(self.linear, tf.TensorShape(input_shape))
        super().build(input_shape)

    @property
    def heads_shape(self):
        """list of int: the last axes of the output."""
        return [self.num_heads, self.size_per_head]

    def call(self, inputs):
        shape = tensor_utils.get_shape_list(inputs)
        return tf.reshape(self.linear(inputs), [*shape[:-1], *self.heads_shape])

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RelativeAttention(base.Layer):
    """Multi-head attention with relative labels, including projections.

    Args:
        hidden_size: int. Size of the output.
        num_heads: int.
        total_key_size: int. Size of queries and keys over all heads; by default `hidden_size`.
        total_value_size: int. Size of values over all heads; by default `total_key_size`.
        relative_vocab_size: int or None. Number of labels; None for no labels.
        att_dropout_prob: float. Dropout rate of attention probabilities.
        initializer: initializer of the projections; by default truncated normal, 0.02.
        query_projection: layer to use instead of a new `ProjectAttentionHeads`.
        key_projection: likewise.
        value_projection: likewise.
        qkv_relative_attention: layer to use instead of a new `QkvRelativeAttention`.
        output_projection: layer to use instead of a new `Dense`.
        use_one_hot_lookup: bool. Whether to look up labels by matrix products.
        name: name of the layer.
    Call args:
        from_seq: float [batch, from_len, from_size].
        to_seq: float [batch, to_len, to_size]; by default `from_seq`.
        att_mask: 0/1 int or bool [batch or 1, from_len, to_len], or None.
        relative_att_ids: int [batch, from_len, to_len], or None.
        training: bool.
    Returns:
        float [batch, from_len, hidden_size].
    Raises:
        ValueError: if a size is not a multiple of `num_heads` or below 1, a given layer is not a
            Keras 2 layer, or shapes do not match.

    >>> from etcmodel import layers
    >>> attention = layers.RelativeAttention(hidden_size=8, num_heads=2)
    >>> attention(tf.zeros([1, 3, 8]), to_seq=tf.zeros([1, 6, 8])).shape
    TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        total_key_size=None,
        total_value_size=None,
        relative_vocab_size=None,
        att_dropout_prob=0.0,
        initializer=None,
        query_projection=None,
        key_projection=None,
        value_projection=None,
        qkv_relative_attention=None,
        output_projection=None,
        use_one_hot_lookup=False,
        name="relative_attention",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        base.check_at_least_1(hidden_size=hidden_size)
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.total_key_size = total_key_size or hidden_size
        self.total_value_size = total_value_size or self.total_key_size
        check_multiple(num_heads, total_key_size=self.total_key_size)
        check_multiple(num_heads, total_value_size=self.total_value_size)
        self.relative_vocab_size = relative_vocab_size
        self.att_dropout_prob = att_dropout_prob
        self.initializer = initializers.as_initializer(initializer)
        self.use_one_hot_lookup = use_one_hot_lookup
        given = (query_projection, key_projection, value_projection)
        given += (qkv_relative_attention, output_projection)
        for argument, layer in zip(_PROJECTION_ARGUMENTS, given, strict=True):
            if layer is not None:
                base.check_part(argument, layer)
        key_size, value_size = self.total_key_size, self.total_value_size
        self.query_projection = query_projection or self._project("query_projection", key_size)
        self.key_projection = key_projection or self._project("key_projection", key_size)
        self.value_projection = value_projection or self._project("value_projection", value_size)
        self.qkv_relative_attention = qkv_relative_attention or QkvRelativeAttention(
            relative_vocab_size=relative_vocab_size,
            att_dropout_prob=att_dropout_prob,
            use_one_hot_lookup=use_one_hot_lookup,
            dtype=self.dtype_policy,
        )
        self.output_projection = output_projection or dense.Dense(
            hidden_size,
            kernel_initializer=initializers.fresh_or_default(self.initializer),
            name="output_projection",
            dtype=self.dtype_policy,
        )

    def _project(self, name, total_size):
        return ProjectAttentionHeads(
            self.num_heads,
            total_size // self.num_heads,
            initializer=initializers.fresh(self.initializer),
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, from_shape):
        from_shape = tf.TensorShape(from_shape)
        sublayers.build_sublayer(self.query_projection, from_shape)
        size_per_head = self.total_key_size // self.num_heads
        sublayers.build_sublayer(
            self.qkv_relative_attention, tf.TensorShape([None, None, self.num_heads, size_per_head])
        )
        sublayers.build_sublayer(
            self.output_projection, tf.TensorShape([None, None, self.total_value_size])
        )
        super().build(from_shape)

    def call(self, from_seq, to_seq=None, att_mask=None, relative_att_ids=None, training=None):
        to_seq = from_seq if to_seq is None else to_seq
        inputs = {
            "from_seq": from_seq,
            "to_seq": to_seq,
            "att_mask": att_mask,
            "relative_att_ids": relative_att_ids,
        }
        argument_checks.check_shapes(inputs, _AXES)
        from_seq, to_seq = sublayers.cast_all(self, from_seq, to_seq)
        # The input size of keys and values may differ, and is known only in the call.
        att = self.qkv_relative_attention(
            self.query_projection(from_seq),
            self.key_projection(to_seq),
            self.value_projection(to_seq),
            att_mask=att_mask,
            relative_att_ids=relative_att_ids,
            training=training,
        )
        return self.output_projection(tensor_utils.flatten_dims(att, first_dim=-2))

    def get_config(self):
        return {
            **super().get_config(),
            **base.config_entries(self, __class__, but=_PROJECTION_ARGUMENTS),
            **{
                name: sublayers.serialize_layer(getattr(self, name))
                for name in _PROJECTION_ARGUMENTS
            },
        }

    @classmethod
    def from_config(cls, config):
        layers = {name: tf_keras.layers.deserialize(config[name]) for name in _PROJECTION_ARGUMENTS}
        return cls(**{**config, **layers})


_PROJECTION_ARGUMENTS = (
    "query_projection",
    "key_projection",
    "value_projection",
    "qkv_relative_attention",
    "output_projection",
)


def check_multiple(num_heads, **sizes):
    """Raises ValueError if a size is not a multiple of `num_heads`, or one of them is below 1."""
    base.check_at_least_1(num_heads=num_heads, **sizes)
    for name, size in sizes.items():
        if size % num_heads:
            raise ValueError(
                f"`{name}` must be a multiple of the number of heads. Received: {name}={size}, "
                f"{num_heads} heads"
            )
