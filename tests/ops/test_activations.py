"""Activations, and dense layers of them, against float64 and plain compositions."""

import math

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import activations, dense

X = np.linspace(-6, 6, 97)
_ERF = np.array([math.erf(x / math.sqrt(2)) for x in X])
_INNER = math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)
_SLOPE = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * X**2)
VALUES = {
    activations.gelu: 0.5 * X * (1 + np.tanh(_INNER)),
    activations.gelu_exact: 0.5 * X * (1 + _ERF),
}
SLOPES = {
    activations.gelu: 0.5 * (1 + np.tanh(_INNER)) + 0.5 * X * _SLOPE / np.cosh(_INNER) ** 2,
    activations.gelu_exact: 0.5 * (1 + _ERF) + X * np.exp(-0.5 * X**2) / math.sqrt(2 * math.pi),
}
BOTH = pytest.mark.parametrize("activation", [activations.gelu, activations.gelu_exact])


@BOTH
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 5e-6), ("bfloat16", 2e-2)])
def test_values_and_slopes_are_those_of_the_formula(activation, dtype, limit):
    x = tf.constant(X, dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = activation(x)
    slope = tape.gradient(value, x)
    assert value.dtype == slope.dtype == dtype
    scale = np.maximum(1, np.abs(VALUES[activation]))
    assert (np.abs(tf.cast(value, tf.float64) - VALUES[activation]) / scale).max() <= limit
    np.testing.assert_allclose(tf.cast(slope, tf.float64), SLOPES[activation], atol=limit)


@BOTH
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("num_rows", [3, 1 << 12])  # The latter are compiled by XLA in a graph.
def test_a_dense_layer_of_an_activation_is_their_composition(activation, training, num_rows):
    rng = np.random.default_rng(0)
    x, kernel, bias, of_output = (
        tf.constant(rng.normal(size=shape), tf.float32)
        for shape in ([num_rows, 40], [40, 5], [5], [num_rows, 5])
    )

    def plain(x, kernel, bias):
        return tf.nn.gelu(x, approximate=activation is activations.gelu) @ kernel + bias

    def fused(*tensors):
        return dense.dense_of_activation(activation, *tensors, training=training)

    check_equal(fused, plain, [x, kernel, bias], of_output)


@BOTH
@pytest.mark.parametrize("num_rows", [3, 1 << 12])
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_dense_layer_of_a_gated_activation_is_their_composition(activation, num_rows, has_bias):
    rng = np.random.default_rng(0)
    x, kernel, bias, of_output = (
        tf.constant(rng.normal(size=shape), tf.float32)
        for shape in ([num_rows, 40], [20, 5], [5], [num_rows, 5])
    )

    def plain(x, kernel, bias=0.0):
        units, gate = tf.split(x, 2, axis=-1)
        units = tf.nn.gelu(units, approximate=activation is activations.gelu)
        return (units * gate) @ kernel + bias

    def fused(*tensors):
        return dense.dense_of_gated(activation, *tensors)

    check_equal(fused, plain, [x, kernel, *([bias] if has_bias else [])], of_output)


def check_equal(one, other, tensors, of_output):
    """That two functions have the same output and, in a graph, the same gradients."""

    @tf.function(autograph=False)
    def run(function):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            output = function(*tensors)
        return output, tape.gradient(output, tensors, of_output)

    found, wanted = (tf.nest.flatten(run(function)) for function in (one, other))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())
