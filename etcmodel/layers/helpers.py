"""Small layers, and the building of sublayers."""

import inspect

import numpy as np
import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import base
from etcmodel.ops import activations
from etcmodel.ops import dense as dense_ops
from etcmodel.ops import normalization as normalization_ops

__all__ = [
    "Dense",
    "DenseLayers",
    "LayerNormalization",
    "TrackedLambda",
    "as_ids",
    "as_initializer",
    "build_sublayer",
    "cast_all",
    "check_at_least_1",
    "check_rates",
    "default_initializer",
    "fresh",
    "serialize_initializer",
    "serialize_layer",
]


def as_initializer(given):
    """An initializer of Keras 2, from one, its name or config, or its like of Keras 3, or None.

    Those of Keras 3 return the same values at each call, so that weights of one shape would all be
    the same.

    Raises:
        ValueError: if there is no such initializer.
    """
    keras = base.keras_3()
    if keras is not None and isinstance(given, keras.initializers.Initializer):
        given = {"class_name": type(given).__name__, "config": given.get_config()}
    return tf_keras.initializers.get(given)


def fresh(initializer):
    """A copy of an initializer, so that each weight gets random values of its own.

    An unseeded Keras initializer returns the same values at each call when it is shared.

    Args:
        initializer: initializer object, its name, or None.
    """
    if isinstance(initializer, tf_keras.initializers.Initializer):
        return type(initializer).from_config(initializer.get_config())
    return tf_keras.initializers.get(initializer)


def default_initializer(initializer_range=0.02):
    """The initializer of all weights unless a layer is given another one."""
    return tf_keras.initializers.TruncatedNormal(stddev=initializer_range)


def serialize_initializer(initializer):
    """The config form of an initializer, None included."""
    return None if initializer is None else tf_keras.initializers.serialize(initializer)


def serialize_layer(layer):
    """The config form of a layer that is part of another one.

    Left out is what Keras notes once the layer is built: a part made from it would be built at
    once, outside the whole's name scope.
    """
    config = tf_keras.layers.serialize(layer)
    return {name: value for name, value in config.items() if name != "build_config"}


def build_sublayer(layer, input_shape):
    """Builds `layer` under its own name scope unless it is built: its variables get full names."""
    if not layer.built:
        with tf.name_scope(layer.name):
            layer.build(input_shape)
            layer.built = True


def as_ids(tensor):
    """The tensor, as int32 if it holds whole numbers as floats."""
    tensor = tf.convert_to_tensor(tensor)
    return tf.cast(tensor, tf.int32) if tensor.dtype.is_floating else tensor


def check_at_least_1(**sizes):
    """Raises ValueError, naming it, if a size is below 1 or no number."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise ValueError(f"`{name}` must be an int. Received: {size!r}")
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {size}")


def check_rates(**rates):
    """Raises ValueError, naming it, if the rate of a dropout is not at least 0 and below 1."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {rate!r}")


def cast_all(layer, *tensors):
    """Casts to the layer's compute type; Keras itself casts only the first argument of a call."""
    return [tf.cast(tensor, layer.compute_dtype) for tensor in tensors]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class Dense(tf_keras.layers.Dense):
    """Keras's dense layer, computed on the flattened input.

    Bias and activation then follow the matrix product directly, which lets TensorFlow compute them
    inside it.
    """

    def call(self, inputs):
        *outer, size = tensor_utils.get_shape_list(inputs)
        outputs = super().call(tf.reshape(inputs, [-1, size]))
        return tf.reshape(outputs, [*outer, self.units])


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LayerNormalization(tf_keras.layers.LayerNormalization):
    """Keras's layer normalization of the last axis, in fewer passes over memory."""

    def call(self, inputs):
        return normalization_ops.layer_norm(
            inputs, tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta), self.epsilon
        )


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class DenseLayers(base.Layer):
    """Dense layers, one after the other; all but the last are followed by the activation.

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
            check_at_least_1(**{f"hidden_sizes[{i}]": size})
        self.hidden_sizes = list(hidden_sizes)
        self.activation = tf_keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = as_initializer(kernel_initializer or "glorot_uniform")
        self.bias_initializer = as_initializer(bias_initializer)
        self.layers = [
            Dense(
                size,
                use_bias=use_bias,
                kernel_initializer=fresh(self.kernel_initializer),
                bias_initializer=fresh(self.bias_initializer),
                name=f"layer_{i}",
                dtype=self.dtype_policy,
            )
            for i, size in enumerate(self.hidden_sizes)
        ]

    def build(self, input_shape):
        size = input_shape[-1]
        for layer in self.layers:
            build_sublayer(layer, [None, size])
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
        """A layer of the activation of its inputs [rows, size]."""
        if self.activation is activations.gelu and self.use_bias:
            tensors = cast_all(self, inputs, layer.kernel, layer.bias)
            return dense_ops.dense_of_gelu(*tensors, training=bool(training))
        return layer(inputs if self.activation is None else self.activation(inputs))

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_sizes": list(self.hidden_sizes),
            "activation": tf_keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": tf_keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": tf_keras.initializers.serialize(self.bias_initializer),
        }


class TrackedLambda(base.Layer):
    """A function as a layer that knows the layers and variables that the function uses.

    Args:
        function: function of the call's arguments. If it takes `training`, it gets what Keras has
            decided; for other functions Keras's value is left out.
        dependencies: sequence of layers, `tf.Module`s or variables. Their variables become the
            layer's.
        name: name of the layer.
    Returns:
        What the function returns.
    Raises:
        ValueError: if a dependency is a layer of Keras 3.
    """

    def __init__(self, function, dependencies=(), name="tracked_lambda", **kwargs):
        super().__init__(name=name, **kwargs)
        for i, dependency in enumerate(dependencies):
            base.refuse_keras_3(f"dependencies[{i}]", dependency)
        self.function = function
        self.dependencies = list(dependencies)
        parameters = inspect.signature(function).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        self._takes_training = takes_any or "training" in parameters

    def call(self, *args, **kwargs):
        if not self._takes_training:
            kwargs.pop("training", None)
        return self.function(*args, **kwargs)

    def get_config(self):
        raise NotImplementedError(
            f"Layer {self.name!r} holds a Python function, which a config cannot. Save its weights "
            "(`save_weights`), or make the function a layer of your own."
        )


for _activation in (activations.gelu, activations.gelu_exact):
    tf_keras.utils.register_keras_serializable(package="etcmodel", name=_activation.__name__)(
        _activation
    )
