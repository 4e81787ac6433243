"""Residual connections."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, dense, initializers, normalization, sublayers
from etcmodel.layers.recomputing_dropout import RecomputingDropout

__all__ = ["ResidualBlock"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class ResidualBlock(base.Layer):
    """An inner layer with dropout, residual connection and layer normalization.

    Post-activation order: `normalize(x + dropout(inner(x)))`; pre-activation order:
    `x + dropout(inner(normalize(x)))`. With a list of tensors, the inner layer is called with them
    as its first arguments and returns as many.

    Args:
        inner_layer: layer; by default two dense layers (feed-forward) that return to the input's
            size.
        normalization_layer: layer, or list of them, one per tensor; by default layer
            normalization with epsilon 1e-12.
        dropout_probability: float. Dropout rate of the inner layer's output.
        use_pre_activation_order: bool.
        inner_intermediate_size: int. Units between the default inner layers; by default the
            input size.
        inner_activation: function or name. Activation between the default inner layers.
        inner_kernel_initializer: initializer of the default inner layers.
        name: name of the layer.
    Call args:
        inputs: float [..., size], or a list of them.
        training: bool.
        **kwargs: arguments of the inner layer.
    Returns:
        Same shape as `inputs`.
    Raises:
        ValueError: if a given layer is not a Keras 2 layer, or `dropout_probability` is out of
            range.

    >>> from etcmodel import layers
    >>> block = layers.ResidualBlock(inner_intermediate_size=16, inner_activation="gelu")
    >>> block(tf.zeros([1, 6, 8])).shape
    TensorShape([1, 6, 8])
    """

    def __init__(
        self,
        inner_layer=None,
        normalization_layer=None,
        dropout_probability=0.0,
        use_pre_activation_order=False,
        inner_intermediate_size=None,
        inner_activation="relu",
        inner_kernel_initializer=None,
        name="residual_block",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        base.check_rates(dropout_probability=dropout_probability)
        if inner_intermediate_size is not None:
            base.check_at_least_1(inner_intermediate_size=inner_intermediate_size)
        self.dropout_probability = dropout_probability
        self.use_pre_activation_order = use_pre_activation_order
        self.inner_intermediate_size = inner_intermediate_size
        self.inner_activation = tf_keras.activations.get(inner_activation)
        self.inner_kernel_initializer = initializers.as_initializer(inner_kernel_initializer)
        self.normalization_layers = self._normalization_layers(normalization_layer)
        self.has_default_inner_layer = inner_layer is None
        if inner_layer is not None:
            base.check_part("inner_layer", inner_layer)
        self.inner_layer = inner_layer
        self.dropout_layers = [
            RecomputingDropout(dropout_probability, name=f"dropout_{i}", dtype=self.dtype_policy)
            for i in range(len(self.normalization_layers))
        ]

    def _normalization_layers(self, given):
        if given is None:
            given = normalization.LayerNormalization(
                axis=-1, epsilon=1e-12, name="layer_norm", dtype=self.dtype_policy
            )
        layers = list(given) if isinstance(given, (list, tuple)) else [given]
        for layer in layers:
            base.check_part("normalization_layer", layer)
        return layers

    def build(self, input_shape):
        shapes = _as_shapes(input_shape)
        if len(shapes) != len(self.normalization_layers):
            raise ValueError(
                f"{len(self.normalization_layers)} normalization layers do not fit "
                f"{len(shapes)} inputs."
            )
        size = shapes[0][-1]
        for layer, shape in zip(self.normalization_layers, shapes, strict=True):
            sublayers.build_sublayer(layer, tf.TensorShape(shape))
        if self.inner_layer is None:
            self.inner_layer = dense.DenseLayers(
                [self.inner_intermediate_size or size, size],
                activation=self.inner_activation,
                kernel_initializer=self.inner_kernel_initializer,
                dtype=self.dtype_policy,
            )
        sublayers.build_sublayer(self.inner_layer, tf.TensorShape(shapes[0]))
        super().build(input_shape)

    def call(self, inputs, training=None, **kwargs):
        is_list = isinstance(inputs, (list, tuple))
        xs = list(inputs) if is_list else [inputs]
        inner_inputs = self._normalize(xs) if self.use_pre_activation_order else xs
        outputs = self.inner_layer(*inner_inputs, **self._inner_kwargs(kwargs, training))
        outputs = list(outputs) if is_list else [outputs]
        if len(outputs) != len(xs):
            raise ValueError(
                f"The inner layer returned {len(outputs)} tensors for {len(xs)} inputs."
            )
        dropped = [
            layer(y, training=training)
            for layer, y in zip(self.dropout_layers, outputs, strict=True)
        ]
        outputs = [x + y for x, y in zip(xs, dropped, strict=True)]
        if not self.use_pre_activation_order:
            outputs = self._normalize(outputs)
        return outputs if is_list else outputs[0]

    def _normalize(self, xs):
        return [layer(x) for layer, x in zip(self.normalization_layers, xs, strict=True)]

    def _inner_kwargs(self, kwargs, training):
        """Adds `training` if the inner layer takes it; layers such as `Dense` do not."""
        if self.inner_layer._expects_training_arg:
            return {**kwargs, "training": training}
        return kwargs

    def get_config(self):
        serialize = sublayers.serialize_layer
        inner = None if self.has_default_inner_layer else serialize(self.inner_layer)
        layers = {
            "inner_layer": inner,
            "normalization_layer": [serialize(layer) for layer in self.normalization_layers],
        }
        entries = base.config_entries(self, __class__, but=layers)
        return {**super().get_config(), **layers, **entries}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        deserialize = tf_keras.layers.deserialize
        if config["inner_layer"] is not None:
            config["inner_layer"] = deserialize(config["inner_layer"])
        config["normalization_layer"] = [deserialize(c) for c in config["normalization_layer"]]
        return cls(**config)


def _as_shapes(input_shape):
    """One shape per tensor, for one tensor or a list of them."""
    if isinstance(input_shape, (list, tuple)) and isinstance(
        input_shape[0], (list, tuple, tf.TensorShape)
    ):
        return [list(shape) for shape in input_shape]
    return [list(input_shape)]
