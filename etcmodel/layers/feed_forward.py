"""Feed-forward layers, also gated ones, and ones whose values exceed float16."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base, dense, initializers, sublayers
from etcmodel.layers.recomputing_dropout import RecomputingDropout
from etcmodel.ops import dense as dense_ops


class _FeedForward(base.Layer):
    """What both kinds have: `output(dropout(…))`, whose parts are dense layers."""

    def __init__(
        self, hidden_size, intermediate_size, activation, use_bias, initializer_range, **kwargs
    ):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.activation = tf_keras.activations.get(activation)
        self.use_bias = use_bias
        self.initializer_range = initializer_range

    def dense(self, name, units, spread, dtype=None):
        """A dense layer with initial weights of the standard deviation `spread`."""
        return dense.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=initializers.default_initializer(spread),
            name=name,
            dtype=dtype or self.dtype_policy,
        )

    def build(self, input_shape):
        sublayers.build_all(self.hidden_size, self.inner, getattr(self, "gate", None))
        sublayers.build_all(self.intermediate_size, self.output_layer)
        super().build(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            **base.config_entries(self, __class__),
            "dropout_prob": self.dropout.rate,
        }


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class FeedForward(_FeedForward):
    """Feed-forward layer, optionally gated (Shazeer 2020).

    `output(dropout(act(inner(x))))`, or with a gate `output(dropout(act(inner(x)) * gate(x)))`.

    Under the policy `mixed_float16` the output's product is computed in float32, and clipped to the
    range of float16, which T5's products exceed.

    Args:
        hidden_size: int. Size of input and output.
        intermediate_size: int.
        activation: function or name.
        is_gated: bool. Whether there is a gate.
        use_bias: bool.
        dropout_prob: float.
        initializer_range: float. Standard deviation of the initial weights of all parts; None:
            1 / sqrt(size of their input).
        name: name of the layer.
    Call args:
        inputs: float [..., hidden_size].
        training: bool.
    Returns:
        Same shape as `inputs`.
    """

    def __init__(
        self,
        hidden_size,
        intermediate_size,
        activation="relu",
        is_gated=False,
        use_bias=True,
        dropout_prob=0.0,
        initializer_range=None,
        name="feed_forward",
        **kwargs,
    ):
        sizes = (hidden_size, intermediate_size)
        super().__init__(*sizes, activation, use_bias, initializer_range, name=name, **kwargs)
        self.is_gated = is_gated
        spreads = [initializer_range or size**-0.5 for size in sizes]
        self.inner = self.dense("inner", intermediate_size, spreads[0])
        self.gate = self.dense("gate", intermediate_size, spreads[0]) if is_gated else None
        self.dropout = RecomputingDropout(dropout_prob, name="dropout", dtype=self.dtype_policy)
        is_float16 = self.compute_dtype == "float16"
        dtype = tf_keras.mixed_precision.Policy("float32") if is_float16 else None
        self.output_layer = self.dense("output", hidden_size, spreads[1], dtype)

    def call(self, inputs, training=None):
        hidden = self.activation(self.inner(inputs))
        if self.gate is not None:
            hidden *= self.gate(inputs)
        output = self.output_layer(self.dropout(hidden, training=training))
        if output.dtype != inputs.dtype:
            largest = inputs.dtype.max
            output = tf.cast(tf.clip_by_value(output, -largest, largest), inputs.dtype)
        return tf.reshape(output, tensor_utils.get_shape_list(inputs))

    def get_config(self):
        return {**super().get_config(), "is_gated": self.is_gated}


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class GatedFeedForward(_FeedForward):
    """Feed-forward layer with a gate, both of which are halves of one product.

    `output(dropout(act(a) * b))`, where `[a, b] = inner(x)`.

    Args:
        hidden_size: int. Size of input and output.
        intermediate_size: int. Size of each half.
        activation: function or name.
        use_bias: bool.
        dropout_prob: float.
        initializer_range: float. Standard deviation of the initial weights of `inner`.
        output_initializer_range: float. That of the output's.
        name: name of the layer.
    Call args:
        inputs: float [..., hidden_size].
        training: bool.
    Returns:
        Same shape as `inputs`.
    """

    def __init__(
        self,
        hidden_size,
        intermediate_size,
        activation="gelu",
        use_bias=False,
        dropout_prob=0.0,
        initializer_range=0.02,
        output_initializer_range=0.02,
        name="feed_forward",
        **kwargs,
    ):
        sizes = (hidden_size, intermediate_size)
        super().__init__(*sizes, activation, use_bias, initializer_range, name=name, **kwargs)
        self.output_initializer_range = output_initializer_range
        self.inner = self.dense("inner", 2 * intermediate_size, initializer_range)
        self.dropout = RecomputingDropout(dropout_prob, name="dropout", dtype=self.dtype_policy)
        self.output_layer = self.dense("output", hidden_size, output_initializer_range)

    def call(self, inputs, training=None):
        hidden = self.inner(inputs)
        keeps_little = self.activation in dense_ops.RECOMPUTED and dense.int8_kernels() is None
        if keeps_little and not (training and self.dropout.rate):
            return self._without_dropout(hidden)
        hidden = dense_ops.gated(self.activation, hidden)
        return self.output_layer(self.dropout(hidden, training=training))

    def _without_dropout(self, hidden):
        """The output, of which the gradient keeps `hidden` alone."""
        layer = self.output_layer
        *outer, size = tensor_utils.get_shape_list(hidden)
        weights = [layer.kernel, *([layer.bias] if self.use_bias else [])]
        tensors = sublayers.cast_all(self, tf.reshape(hidden, [-1, size]), *weights)
        output = dense_ops.dense_of_gated(self.activation, *tensors)
        return tf.reshape(output, [*outer, self.hidden_size])

    def get_config(self):
        output_range = self.output_initializer_range
        return {**super().get_config(), "output_initializer_range": output_range}
