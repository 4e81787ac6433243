"""LongT5's blocks, their biases, and T5's normalization, each against an obvious slow twin."""

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from etcmodel.ops import normalization, transient_blocks
from etcmodel.ops.blockwise import attend, attention_probs
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.labels import LabelTables, PairBiases, RowOffsetLabels
from etcmodel.ops.offsets import LogBuckets
from etcmodel.ops.pair_values import Dense
from etcmodel.ops.reach import Window
from etcmodel.ops.tiles import Tiling


def plain_numbers(mask, size):
    """A place at a time: a block is closed by a token at its last place."""
    closed = sum(mask[place] for place in range(len(mask)) if place % size == size - 1)
    return [min(place // size, closed - 1) if mask[place] else -1 for place in range(len(mask))]


@hypothesis.given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(1, 6))
def test_block_numbers(mask, size):
    numbers = transient_blocks.block_numbers(tf.constant([mask]), size)[0].numpy()
    assert numbers.tolist() == plain_numbers(mask, size)


def test_padding_in_front_moves_the_borders():
    mask = [1, 1, 0, 0, 1, 1, 1, 1, 1, 1]
    numbers = transient_blocks.block_numbers(tf.constant([mask]), 4)
    assert numbers[0].numpy().tolist() == [0, 0, -1, -1, 0, 0, 0, 0, 0, 0]
    assert transient_blocks.is_used(numbers, 2)[0].numpy().tolist() == [True, False]


@hypothesis.given(st.integers(1, 4), st.integers(1, 17), st.integers(0, 2**31))
def test_block_sums(size, length, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, length, 2)).astype(np.float32)
    mask = rng.integers(0, 2, (3, length))
    wanted = np.zeros((3, length // size, 2), np.float32)
    for row in range(3):
        for place, number in enumerate(plain_numbers(mask[row], size)):
            if number >= 0:
                wanted[row, number] += x[row, place]
    numbers = transient_blocks.block_numbers(mask, size)
    sums = transient_blocks.block_sums(x, numbers, length // size)
    np.testing.assert_allclose(sums, wanted, atol=1e-5)


def side_biases(table, numbers, num_keys, function):
    """A number for each head, query and key."""
    offsets = np.arange(num_keys, dtype=np.int32) - numbers[..., np.newaxis]
    return tf.transpose(tf.gather(table, function.labels(tf.constant(offsets))), [0, 3, 1, 2])


def test_row_offset_labels_are_biases_by_pair():
    """Outputs and gradients, beside a window, in one step and in several."""
    rng = np.random.default_rng(1)
    length, num_keys, heads, size = 150, 9, 2, 4

    def random(*shape):
        return tf.constant(rng.normal(size=shape), tf.float32)

    queries, keys, values, weights = (random(2, length, heads, size) for _ in range(4))
    side_keys, side_values = random(2, num_keys, heads, size), random(2, num_keys, heads, size)
    table, function = random(8, heads), LogBuckets(8, 20)
    numbers = rng.integers(-1, num_keys, (2, length)).astype(np.int32)

    def run(table, make_labels, tiling):
        with tf.GradientTape() as tape:
            tape.watch(table)
            sets = [
                KeySet(keys, values, Window(5, 5)),
                KeySet(side_keys, side_values, labels=make_labels(table)),
            ]
            output = attend(queries, sets, scale=1.0, tiling=tiling)
            loss = tf.reduce_sum(output * weights)
        gradient = tf.convert_to_tensor(tape.gradient(loss, table))
        return output, gradient, attention_probs(queries, sets, scale=1.0)[1]

    wanted = run(
        table,
        lambda x: PairBiases(Dense(side_biases(x, numbers, num_keys, function))),
        Tiling(rows="all"),
    )
    for tiling in (Tiling(), Tiling(rows=16, logits=4000)):
        found = run(
            table,
            lambda x: RowOffsetLabels(LabelTables(biases=x), function, tf.constant(numbers)),
            tiling,
        )
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3)


def test_rms_norm_and_its_gradient():
    rng = np.random.default_rng(2)
    x, gamma = tf.constant(rng.normal(size=(3, 5, 8))), tf.constant(rng.normal(size=8))
    weights = rng.normal(size=(3, 5, 8))

    def plain(x, gamma):
        return x / tf.sqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 0.05) * gamma

    results = []
    for function in (plain, lambda x, gamma: normalization.rms_norm(x, gamma, 0.05)):
        one, other = tf.cast(x, tf.float32), tf.cast(gamma, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch([one, other])
            output = function(one, other)
            loss = tf.reduce_sum(output * weights.astype(np.float32))
        results.append([output, *tape.gradient(loss, [one, other])])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
