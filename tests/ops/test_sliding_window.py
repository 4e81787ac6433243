"""Sliding windows and global tokens against a twin that goes query by query."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.ops import sliding_window
from etcmodel.ops.reach import Window
from tests.ops import numpy_sliding_window as twin


@st.composite
def attentions(draw):
    """Sizes, windows by head, masks, and a seed for the values."""
    length = draw(st.integers(1, 14))
    size = st.integers(0, 4)
    window = st.tuples(size, size, st.integers(1, 3))
    shape = (2, length)
    bits = st.lists(st.booleans(), min_size=2 * length, max_size=2 * length)
    masks = (np.reshape(draw(bits), shape) for _ in range(2))
    windows = draw(st.lists(window, min_size=1, max_size=3))
    return windows, *masks, draw(st.integers(0, 99))


@hypothesis.settings(max_examples=25)
@hypothesis.given(attentions())
def test_as_query_by_query(attention):
    windows, token_mask, global_mask, seed = attention
    global_mask &= token_mask
    shape = (*token_mask.shape, len(windows), 3)
    queries, keys, values = np.random.default_rng(seed).normal(size=(3, *shape))
    found = sliding_window.attend(
        *(x.astype(np.float32) for x in (queries, keys, values)),
        [Window(*window) for window in windows],
        token_mask=tf.constant(token_mask),
        global_tokens=sliding_window.find_global_tokens(tf.constant(global_mask)),
    )
    sees = twin.dense_mask(shape[1], windows, token_mask, global_mask)
    expected, _ = twin.attend(queries, keys, values, sees)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@hypothesis.settings(max_examples=25)
@hypothesis.given(st.integers(1, 9), st.integers(0, 99), st.sampled_from([None, 3, 20]))
def test_global_tokens_are_gathered_in_their_order_and_put_back(length, seed, most):
    rng = np.random.default_rng(seed)
    mask = rng.random([3, length]) < 0.3
    x = rng.normal(size=[3, length, 2]).astype(np.float32)
    found = sliding_window.find_global_tokens(tf.constant(mask), most)
    if found is None:
        assert not mask.any() and most is None
        return
    kept = mask & (np.cumsum(mask, 1) <= (length if most is None else most))
    np.testing.assert_array_equal(found.mask, kept)
    gathered = found.gather(tf.constant(x)).numpy()
    for row, positions in enumerate(map(np.flatnonzero, kept)):
        np.testing.assert_array_equal(gathered[row, : len(positions)], x[row, positions])
        np.testing.assert_array_equal(found.is_used[row], np.arange(found.number) < len(positions))
    put = found.put(tf.constant(x), tf.constant(-gathered))
    np.testing.assert_array_equal(put, np.where(kept[..., np.newaxis], -x, x))


GIVEN = {
    "mask": np.array([[1, 0, 0, 1], [1, 0, 0, 1]]),
    "bool": np.array([[True, False, False, True]] * 2),
    "positions": np.array([3, 0]),
    "rows": tf.ragged.constant([[0, 3], [3, 0]]),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN.keys())
def test_a_mask_or_positions_say_what_is_global(given):
    mask = sliding_window.global_mask_of(given, 2, 4, [])
    np.testing.assert_array_equal(mask, [[True, False, False, True]] * 2)


def test_rows_of_positions_may_differ():
    mask = sliding_window.global_mask_of(tf.ragged.constant([[2], [0, 3], []]), 3, 4, [])
    np.testing.assert_array_equal(mask, np.array([[0, 0, 1, 0], [1, 0, 0, 1], [0] * 4], bool))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0, 2, 0]], r"below 2 \(0: local, 1: global; .*`attention_mask`\).* from 0 to 2"),
        ([[0, -1, 0]], r"Received values from -1 to 0"),
        ([3], r"as positions.* below the number of tokens. Received values from 3 to 3"),
        ([[[1]]], r"must be a mask of shape \[batch, length\] or int positions"),
        ([True, False, False], r"or int positions of shape \[number\]. Received: bool of shape"),
        ([[0]], r"a mask of shape \[batch, length\].* Wanted sizes: \[1, 3\] received: \[1, 1\]"),
        ([[0, 1, 0]] * 2, r"Wanted sizes: \[1, 3\] received: \[2, 3\]"),
        (tf.ragged.constant([[0], [1]]), r"must have a row for each example.* received: \[2\]"),
    ],
)
def test_anything_else_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        sliding_window.global_mask_of(given, 1, 3, [])
