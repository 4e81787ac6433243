"""Longformer's attention layer: both ways of computing the rows of global tokens."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.layers.attention.sliding_window import SlidingWindowAttention
from etcmodel.ops import sliding_window

LENGTH, HEADS, HIDDEN = 24, 2, 16


@pytest.fixture(name="layer", scope="module")
def _layer():
    layer = SlidingWindowAttention(HIDDEN, HEADS, radius=2)
    layer.build([None, None, HIDDEN])
    rng = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.3))
    return layer


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("number", [0, 5, 1, 4, 8])
@pytest.mark.parametrize("most", [None, 8], ids=["any number", "at most 8"])
def test_few_and_many_global_tokens_see_what_they_see_in_training(layer, number, most, is_known):
    assert sliding_window.most_queries(LENGTH, HEADS, HIDDEN) == 4
    rng = np.random.default_rng(number)
    inputs = tf.constant(rng.normal(size=[2, LENGTH, HIDDEN]), tf.float32)
    token_mask = tf.constant(np.arange(LENGTH) < [[LENGTH], [LENGTH - 5]])
    is_global = tf.constant(np.arange(LENGTH) < [[number], [number // 2]])

    def call(inputs, is_global, training):
        tokens = sliding_window.find_global_tokens(is_global, most)
        return layer(inputs, token_mask=token_mask, global_tokens=tokens, training=training)

    expected = call(inputs, is_global, training=True)
    np.testing.assert_allclose(call(inputs, is_global, training=False), expected, atol=2e-5)
    shape = [2, LENGTH, HIDDEN] if is_known else [None, None, HIDDEN]
    specs = [tf.TensorSpec(shape), tf.TensorSpec(shape[:2], tf.bool)]
    graph = tf.function(lambda *x: call(*x, training=False), specs, autograph=False)
    np.testing.assert_allclose(graph(inputs, is_global), expected, atol=2e-5)


@pytest.mark.parametrize("training", [False, True])
def test_all_weights_have_gradients(layer, training):
    """Those of the keys' biases are 0, since probabilities do not depend on them."""
    inputs = tf.constant(np.random.default_rng(3).normal(size=[1, LENGTH, HIDDEN]), tf.float32)
    tokens = sliding_window.find_global_tokens(tf.constant(np.arange(LENGTH)[np.newaxis] < 2), 2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(inputs, global_tokens=tokens, training=training) ** 2)
    gradients = tape.gradient(loss, layer.trainable_variables)
    for variable, gradient in zip(layer.trainable_variables, gradients, strict=True):
        if "key" in variable.name and "bias" in variable.name:
            np.testing.assert_allclose(gradient, tf.zeros_like(variable), atol=1e-4)
        else:
            assert np.abs(gradient).max() > 1e-3, variable.name
