"""Builds, calls and serializes layers that are parts of other layers."""

import tensorflow as tf
import tf_keras


def build_sublayer(layer, input_shape):
    """Builds `layer`, if needed, in its own name scope, so that variables get full names.

    >>> from etcmodel.layers import dense, sublayers
    >>> layer = dense.Dense(16, name="pooler")
    >>> sublayers.build_sublayer(layer, [None, 8])
    >>> layer.kernel.shape
    TensorShape([8, 16])
    """
    if not layer.built:
        with tf.name_scope(layer.name):
            layer.build(input_shape)
            layer.built = True


def build_all(size, *layers):
    """Builds layers for inputs [batch, length, size] in this order, without those that are None.

    >>> from etcmodel.layers import dense, sublayers
    >>> layer = dense.Dense(16)
    >>> sublayers.build_all(8, layer, None)
    >>> layer.kernel.shape
    TensorShape([8, 16])
    """
    for layer in filter(None, layers):
        build_sublayer(layer, tf.TensorShape([None, None, size]))


def serialize_layer(layer):
    """Returns the config of a layer that is part of another one.

    Leaves out `build_config`, which Keras adds once the layer is built: a layer created from it
    would be built immediately, outside the name scope of the outer layer.
    """
    config = tf_keras.layers.serialize(layer)
    return {name: value for name, value in config.items() if name != "build_config"}


def cast_all(layer, *tensors):
    """Casts to the layer's compute dtype; Keras itself casts only the first argument of a call."""
    return [tf.cast(tensor, layer.compute_dtype) for tensor in tensors]


def as_ids(tensor):
    """Returns ids as a tensor of int32 or int64; whole numbers of other dtypes become int32."""
    tensor = tf.convert_to_tensor(tensor)
    return tensor if tensor.dtype in (tf.int32, tf.int64) else tf.cast(tensor, tf.int32)
