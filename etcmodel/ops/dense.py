"""Feed-forward layers that keep few tensors for the backward pass."""

import tensorflow as tf

from etcmodel.ops import activations
from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.gradients import custom_gradient


@compiled_elementwise
def _gelu(x):
    return tf.cast(tf.nn.gelu(tf.cast(x, tf.float32), approximate=True), x.dtype)


@compiled_elementwise
def _gelu_exact(x):
    return tf.cast(tf.nn.gelu(tf.cast(x, tf.float32), approximate=False), x.dtype)


# The activations that `dense_of_activation` supports, with the functions that compute them where
# gradients are taken, and their gradients.
RECOMPUTED = {
    activations.gelu: (_gelu, activations.gelu_gradient),
    activations.gelu_exact: (_gelu_exact, activations.gelu_exact_gradient),
}


def dense_of_activation(activation, x, kernel, bias, training=False):
    """Applies a dense layer to the activation of its input: `activation(x) @ kernel + bias`.

    The gradient recomputes the activation from `x`, so that only one copy of a transformer layer's
    largest tensor is kept instead of two.

    Args:
        activation: one of `RECOMPUTED`.
        x: float [rows, size], before the activation.
        kernel: float [size, units].
        bias: float [units].
        training: bool. Whether a gradient will be taken. Determines how the activation is computed,
            not its value.
    Returns:
        float [rows, units].
    """
    compute, compute_gradient = RECOMPUTED[activation]

    @custom_gradient
    def run(x, kernel, bias):
        def grad(gradient):
            with tf.control_dependencies(
                [gradient]
            ):  # Delays the recomputation until the backward pass.
                activated = compute(x)
            activated_gradient = tf.matmul(gradient, kernel, transpose_b=True)
            return (
                compute_gradient(x, activated_gradient),
                tf.matmul(activated, gradient, transpose_a=True),
                tf.reduce_sum(gradient, axis=0),
            )

        # Without a gradient, TensorFlow fuses the activation in a graph into the previous matrix
        # product.
        is_alone = training or tf.executing_eagerly()
        activated = compute(x) if is_alone else activation(x)
        return tf.nn.bias_add(tf.matmul(activated, kernel), bias), grad

    return run(x, kernel, bias)


def gated(activation, x):
    """Multiplies the activation of the first half of the last axis by the second half (a gate).

    The gradient of an activation in `RECOMPUTED` keeps only `x`.

    Args:
        activation: function.
        x: float [..., 2 * size].
    Returns:
        float [..., size].
    """
    if activation not in RECOMPUTED:
        units, gate = tf.split(x, 2, axis=-1)
        return activation(units) * gate

    @custom_gradient
    def run(x):
        def grad(gradient):
            return _gated_gradient(x, gradient, activation=activation)[0]

        return _gated(x, activation=activation), grad

    return run(x)


def dense_of_gated(activation, x, kernel, bias=None):
    """Applies a dense layer to a gated activation: `gated(activation, x) @ kernel + bias`.

    The gradient recomputes the activation from `x` in the pass that computes the gradient of `x`.

    Args:
        activation: one of `RECOMPUTED`.
        x: float [rows, 2 * size].
        kernel: float [size, units].
        bias: float [units] or None.
    Returns:
        float [rows, units].
    """

    @custom_gradient
    def run(x, kernel, *bias):
        def grad(gradient):
            of_gated = tf.matmul(gradient, kernel, transpose_b=True)
            of_x, activated = _gated_gradient(x, of_gated, activation=activation)
            of_kernel = tf.matmul(activated, gradient, transpose_a=True)
            return of_x, of_kernel, *(tf.reduce_sum(gradient, axis=0) for _ in bias)

        output = tf.matmul(_gated(x, activation=activation), kernel)
        return tf.nn.bias_add(output, *bias) if bias else output, grad

    return run(x, kernel) if bias is None else run(x, kernel, bias)


@compiled_elementwise
def _gated(x, *, activation):
    units, gate = tf.split(x, 2, axis=-1)
    compute, _ = RECOMPUTED[activation]
    return compute(units) * gate


@compiled_elementwise
def _gated_gradient(x, gradient, *, activation):
    """(the gradient of `x`, the gated activation)."""
    units, gate = tf.split(x, 2, axis=-1)
    compute, compute_gradient = RECOMPUTED[activation]
    activated = compute(units)
    of_x = tf.concat([compute_gradient(units, gradient * gate), activated * gradient], -1)
    return of_x, activated * gate
