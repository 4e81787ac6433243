"""Attention to projections that are never computed equals attention to computed ones."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import sliding_window
from etcmodel.ops.masks import KeyMask

BATCH, ROWS, KEYS, HEADS, SIZE, INPUT_SIZE = 2, 3, 7, 2, 4, 5


@pytest.fixture(name="arrays")
def _arrays():
    rng = np.random.default_rng(0)
    shapes = {
        "queries": [BATCH, ROWS, HEADS, SIZE],
        "inputs": [BATCH, KEYS, INPUT_SIZE],
        "key_kernel": [INPUT_SIZE, HEADS * SIZE],
        "value_kernel": [INPUT_SIZE, HEADS * SIZE],
        "value_bias": [HEADS * SIZE],
    }
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def slow(arrays, mask, key_bias):
    """Query by query, over projected keys and values."""
    keys = (arrays["inputs"] @ arrays["key_kernel"] + key_bias).reshape(BATCH, KEYS, HEADS, SIZE)
    values = arrays["inputs"] @ arrays["value_kernel"] + arrays["value_bias"]
    values = values.reshape(keys.shape)
    outputs = np.zeros([BATCH, ROWS, HEADS, SIZE])
    for example, row, head in np.ndindex(BATCH, ROWS, HEADS):
        seen = np.flatnonzero(mask[example])
        logits = keys[example, seen, head] @ arrays["queries"][example, row, head] / SIZE**0.5
        weights = np.exp(logits - logits.max())
        outputs[example, row, head] = weights / weights.sum() @ values[example, seen, head]
    return outputs


def attend(arrays, *masks):
    tensors = {name: tf.constant(x, tf.float32) for name, x in arrays.items()}
    return sliding_window.attend_folded(**tensors, masks=masks)


def test_equals_projected_keys_and_values_of_any_key_bias(arrays):
    mask = np.ones([BATCH, KEYS], bool)
    key_bias = np.random.default_rng(1).normal(size=HEADS * SIZE)
    np.testing.assert_allclose(attend(arrays), slow(arrays, mask, key_bias), atol=1e-5)


def test_masked_keys_are_not_seen(arrays):
    mask = np.array([[1, 1, 0, 1, 0, 0, 1], [0, 1, 1, 1, 1, 1, 0]], bool)
    found = attend(arrays, KeyMask(tf.constant(mask)))
    np.testing.assert_allclose(found, slow(arrays, mask, 0.0), atol=1e-5)


def test_gradients_are_those_of_finite_differences(arrays):
    mask = np.ones([BATCH, KEYS], bool)
    weights = np.random.default_rng(2).normal(size=[BATCH, ROWS, HEADS, SIZE])
    variables = {name: tf.constant(x, tf.float32) for name, x in arrays.items()}
    with tf.GradientTape() as tape:
        tape.watch(variables)
        loss = tf.reduce_sum(sliding_window.attend_folded(**variables) * weights)
    for name, gradient in tape.gradient(loss, variables).items():
        step = np.random.default_rng(3).normal(size=arrays[name].shape) * 1e-5
        ends = [
            (slow({**arrays, name: arrays[name] + sign * step}, mask, 0.0) * weights).sum()
            for sign in (1, -1)
        ]
        along = np.sum(gradient.numpy() * step)
        np.testing.assert_allclose(along, (ends[0] - ends[1]) / 2, rtol=2e-3, atol=1e-8)


@pytest.mark.parametrize("num_keys", [64, 512, 1000, 4096])
def test_half_of_the_queries_for_which_the_arithmetic_is_equal(num_keys):
    heads, size = 12, 768

    def folded(rows):
        return 2 * rows * size * (size + heads * num_keys)

    def projected(rows):
        return 2 * num_keys * size * (size + rows)

    most = sliding_window.most_queries(num_keys, heads, size)
    assert folded(2 * most) <= projected(2 * most)
    assert folded(2 * most + 2) > projected(2 * most + 2)
