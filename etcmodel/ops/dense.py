"""Feed-forward layers that keep few tensors for the backward pass."""

import tensorflow as tf

from etcmodel.ops import activations
from etcmodel.ops.compilation import compiled_elementwise

__all__ = ["dense_of_gelu"]


def dense_of_gelu(x, kernel, bias, training=False):
    """A dense layer applied to the GELU of its input: `gelu(x) @ kernel + bias`.

    The gradient recomputes the GELU from `x`, so that one copy of the largest tensor of a
    transformer layer is kept instead of two.

    Args:
        x: float [rows, size], before the activation.
        kernel: float [size, units].
        bias: float [units].
        training: bool. Whether a gradient will be taken. It decides how the GELU is computed, not
            its value.
    Returns:
        float [rows, units].
    """

    @tf.custom_gradient
    def run(x, kernel, bias):
        def grad(gradient):
            with tf.control_dependencies(
                [gradient]
            ):  # Delays the recomputation until the backward pass.
                activated = _gelu(x)
            activated_gradient = tf.matmul(gradient, kernel, transpose_b=True)
            return (
                activations.gelu_gradient(x, activated_gradient),
                tf.matmul(activated, gradient, transpose_a=True),
                tf.reduce_sum(gradient, axis=0),
            )

        # Without a gradient, TensorFlow fuses this GELU into the previous matrix product.
        activated = _gelu(x) if training else activations.gelu(x)
        return tf.nn.bias_add(tf.matmul(activated, kernel), bias), grad

    return run(x, kernel, bias)


@compiled_elementwise
def _gelu(x):
    return tf.cast(tf.nn.gelu(tf.cast(x, tf.float32), approximate=True), x.dtype)
