"""Dense layers."""

import contextlib
import threading

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.autograph import without_autograph
from etcmodel.layers import base, initializers, sublayers
from etcmodel.ops import activations, errors, int8
from etcmodel.ops import dense as dense_ops

# Of both sizes of a kernel in 8 bits. Smaller ones, as for logits of a few labels, gain nothing.
LEAST_SIZE = 32
_state = threading.local()


class Int8Kernels:
    """Variables with the kernels of dense layers in 8 bits, made when a layer is first called.

    Attributes:
        variables: list of `tf.Variable`.
    """

    def __init__(self):
        self._found = {}

    @property
    def variables(self):
        return [variable for kernel in self._found.values() for variable in kernel]

    def of(self, kernel):
        """`int8.Int8Kernel` of variables; None for a kernel that stays in float32.

        Args:
            kernel: float32 variable [size, units].
        Raises:
            ValueError: if the kernel is used in another precision.
        """
        if kernel.dtype != tf.float32:
            errors.fail(
                "Weights of 8 bits are made of a model that computes in float32, not in "
                f"{kernel.dtype.name}. Load it without mixed precision (--mixed_precision=float32)."
            )
        if min(kernel.shape) < LEAST_SIZE:
            return None
        if kernel.ref() not in self._found:
            with tf.init_scope():  # Variables are of no graph.
                made = int8.quantized(kernel.read_value())
                variables = [tf.Variable(x, trainable=False) for x in made]
            self._found[kernel.ref()] = int8.Int8Kernel(*variables)
        return self._found[kernel.ref()]


def int8_kernels():
    """`Int8Kernels` of the scope that this is called in, or None."""
    return getattr(_state, "kernels", None)


@contextlib.contextmanager
def int8_scope():
    """Context manager in which dense layers compute with weights of 8 bits, for inference.

    It is for functions that are traced within it and thrown away: those traced before still compute
    in float32 within it, and those traced within it in 8 bits behind it. There are no gradients.

    Yields:
        `Int8Kernels`, empty at first.
    """
    previous, _state.kernels = int8_kernels(), Int8Kernels()
    try:
        yield _state.kernels
    finally:
        _state.kernels = previous


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class Dense(tf_keras.layers.Dense):
    """Keras's dense layer, computed on the input reshaped to rank 2.

    TensorFlow can fuse bias and activation into matrix products of rank 2.

    >>> from etcmodel.layers import dense
    >>> dense.Dense(16, activation="tanh")(tf.zeros([1, 6, 8])).shape
    TensorShape([1, 6, 16])
    """

    @without_autograph
    def call(self, inputs):
        if inputs.shape.rank == 2:
            return self._of_rows(inputs)
        *outer, size = tensor_utils.get_shape_list(inputs)
        outputs = self._of_rows(tf.reshape(inputs, [-1, size]))
        return tf.reshape(outputs, [*outer, self.units])

    def _of_rows(self, rows):
        kernels = int8_kernels()
        kernel = kernels and kernels.of(self.kernel)
        if kernel is None:
            return super().call(rows)
        outputs = int8.product(rows, kernel, self.bias if self.use_bias else None)
        return outputs if self.activation is None else self.activation(outputs)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class DenseLayers(base.Layer):
    """A sequence of dense layers, with an activation between them and none after the last.

    Args:
        hidden_sizes: list of int. Units of each layer.
        activation: function, name (`tf_keras.activations`), or None.
        use_bias: bool.
        kernel_initializer: initializer; by default Glorot uniform.
        bias_initializer: initializer.
        name: name of the layer.
    Call args:
        inputs: float [..., input_size].
    Returns:
        float [..., hidden_sizes[-1]].
    Raises:
        ValueError: if `hidden_sizes` is empty or a size is below 1.

    >>> from etcmodel import layers
    >>> layers.DenseLayers([16, 4], activation="relu")(tf.zeros([1, 6, 8])).shape
    TensorShape([1, 6, 4])
    """

    def __init__(
        self,
        hidden_sizes,
        activation=None,
        use_bias=True,
        kernel_initializer=None,
        bias_initializer="zeros",
        name="dense_layers",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        if not hidden_sizes:
            raise ValueError(f"`hidden_sizes` must not be empty. Received: {hidden_sizes=}")
        for i, size in enumerate(hidden_sizes):
            base.check_at_least_1(**{f"hidden_sizes[{i}]": size})
        self.hidden_sizes = list(hidden_sizes)
        self.activation = tf_keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.as_initializer(
            kernel_initializer or "glorot_uniform"
        )
        self.bias_initializer = initializers.as_initializer(bias_initializer)
        self.layers = [
            Dense(
                size,
                use_bias=use_bias,
                kernel_initializer=initializers.fresh(self.kernel_initializer),
                bias_initializer=initializers.fresh(self.bias_initializer),
                name=f"layer_{i}",
                dtype=self.dtype_policy,
            )
            for i, size in enumerate(self.hidden_sizes)
        ]

    def build(self, input_shape):
        size = input_shape[-1]
        for layer in self.layers:
            sublayers.build_sublayer(layer, [None, size])
            layer.input_spec = None
            size = layer.units
        super().build(input_shape)

    def call(self, inputs, training=None):
        *outer, size = tensor_utils.get_shape_list(inputs)
        first, *others = self.layers
        outputs = first(tf.reshape(inputs, [-1, size]))
        for layer in others:
            outputs = self._activated(layer, outputs, training)
        return tf.reshape(outputs, [*outer, self.hidden_sizes[-1]])

    def _activated(self, layer, inputs, training):
        """Applies the activation and then a layer to inputs [rows, size]."""
        keeps_little = self.activation in dense_ops.RECOMPUTED and self.use_bias
        if keeps_little and int8_kernels() is None:
            tensors = sublayers.cast_all(self, inputs, layer.kernel, layer.bias)
            return dense_ops.dense_of_activation(self.activation, *tensors, training=bool(training))
        return layer(inputs if self.activation is None else self.activation(inputs))

    def get_config(self):
        return {
            **super().get_config(),
            **base.config_entries(self, __class__),
            "hidden_sizes": list(self.hidden_sizes),
        }


for _activation in (activations.gelu, activations.gelu_exact):
    tf_keras.utils.register_keras_serializable(package="etcmodel", name=_activation.__name__)(
        _activation
    )
