"""GELU with a gradient that keeps nothing but its argument."""

import math

import tensorflow as tf

from etcmodel.ops.compilation import compiled_elementwise

__all__ = ["gelu", "gelu_exact", "gelu_gradient"]

_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


def gelu(x):
    """GELU, the tanh approximation with which the released checkpoints were trained.

    Args:
        x: float tensor.
    Returns:
        As `x`.
    """
    return _gelu(x)


@tf.custom_gradient
def _gelu(x):
    def grad(gradient):
        return gelu_gradient(x, gradient)

    # Without a gradient to take, TensorFlow computes this inside the matrix product that `x` comes
    # from, on a CPU. It knows the formula in this order of factors under any names of operations;
    # `tf.nn.gelu`, which has a power, under some names only.
    cube = x * (x * x)
    return 0.5 * x * (1 + tf.tanh(_SCALE * (x + _CUBIC * cube))), grad


@compiled_elementwise
def gelu_gradient(x, gradient):
    """The gradient of the argument of `gelu` from that of its value."""
    dtype, x = x.dtype, tf.cast(x, tf.float32)
    tanh = tf.tanh(_SCALE * (x + _CUBIC * x * x * x))
    inner = _SCALE * (1 + 3 * _CUBIC * x * x)
    slope = 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner
    return tf.cast(tf.cast(gradient, tf.float32) * slope, dtype)


def gelu_exact(x):
    """GELU by the error function, as in Hugging Face's BERT."""
    return tf.nn.gelu(x, approximate=False)
