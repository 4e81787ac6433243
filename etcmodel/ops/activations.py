"""Both forms of GELU, and swish, with gradients that need no tensor but the argument."""

import math

import tensorflow as tf

from etcmodel.ops.compilation import compiled_elementwise, is_compiled_whole
from etcmodel.ops.gradients import custom_gradient, free_with_graph

_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


def gelu(x):
    """GELU in its tanh approximation, with which the released checkpoints were trained.

    Args:
        x: float tensor.
    Returns:
        Same shape and dtype as `x`.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.gelu(tf.constant([-1.0, 0.0, 1.0])).numpy().round(3)
    array([-0.159,  0.   ,  0.841], dtype=float32)
    """
    return _gelu(x)


@custom_gradient
def _gelu(x):
    def grad(gradient):
        return gelu_gradient(x, gradient)

    # If no gradient is taken, TensorFlow on a CPU fuses this into the matrix product that computes
    # `x`. Its pattern matcher recognizes this order of factors under any operation names, but
    # `tf.nn.gelu`, which uses a power, only under some.
    cube = x * (x * x)
    return 0.5 * x * (1 + tf.tanh(_SCALE * (x + _CUBIC * cube))), grad


@compiled_elementwise
def gelu_gradient(x, gradient):
    """The gradient with respect to the argument of `gelu`, from that of its output."""
    dtype, x = x.dtype, tf.cast(x, tf.float32)
    tanh = tf.tanh(_SCALE * (x + _CUBIC * x * x * x))
    inner = _SCALE * (1 + 3 * _CUBIC * x * x)
    slope = 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner
    return tf.cast(tf.cast(gradient, tf.float32) * slope, dtype)


def gelu_exact(x):
    """GELU in its exact form with the error function, as in Hugging Face's BERT.

    Args:
        x: float tensor.
    Returns:
        Same shape and dtype as `x`.
    """
    return _gelu_exact(x)


@custom_gradient
def _gelu_exact(x):
    return tf.nn.gelu(x, approximate=False), lambda gradient: gelu_exact_gradient(x, gradient)


def gelu_exact_gradient(x, gradient):
    """The gradient with respect to the argument of `gelu_exact`, from that of its output."""
    return _exact_gradient(x, gradient, is_whole=is_compiled_whole())


@compiled_elementwise
def _exact_gradient(x, gradient, is_whole):
    dtype, x = x.dtype, tf.cast(x, tf.float32)
    scaled = x * math.sqrt(0.5)
    # StableHLO, which whole programs may be exported as, has neither; TensorFlow writes erfc out in
    # its operations, as in `gelu_exact`, but erf not. Otherwise erf is faster.
    probability = 0.5 * (tf.math.erfc(-scaled) if is_whole else 1 + tf.math.erf(scaled))
    density = tf.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return tf.cast(tf.cast(gradient, tf.float32) * (probability + x * density), dtype)


def swish(x):
    """`x * sigmoid(x)` (Ramachandran et al. 2017), which Hugging Face also calls SiLU.

    Args:
        x: float tensor.
    Returns:
        Same shape and dtype as `x`.
    """
    return free_with_graph(tf.nn.silu(x))
