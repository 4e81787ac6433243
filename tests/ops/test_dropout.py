"""Dropout: what a seed scope fixes, and the statistics of its masks."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import dropout as dropout_ops

ONES = np.ones([64], np.float32)


def masks(seed, num_calls=3):
    with dropout_ops.seed_scope(seed):
        return [dropout_ops.dropout(ONES, 0.5).numpy() for _ in range(num_calls)]


def differ(first, second):
    return not np.array_equal(first, second)


def test_equal_seeds_give_equal_masks_call_by_call():
    np.testing.assert_array_equal(masks([1, 2]), masks([1, 2]))


def test_another_seed_gives_other_masks():
    assert differ(masks([1, 2]), masks([2, 1]))


def test_each_call_in_a_scope_draws_its_own_mask():
    first, second, third = masks([1, 2])
    assert differ(first, second) and differ(second, third) and differ(first, third)


def test_outside_a_scope_each_call_draws_its_own_mask():
    assert differ(dropout_ops.dropout(ONES, 0.5), dropout_ops.dropout(ONES, 0.5))


def test_an_inner_scope_counts_by_itself_and_the_outer_one_goes_on():
    expected_outer, expected_inner = masks([1, 2], 2), masks([3, 4], 1)
    with dropout_ops.seed_scope([1, 2]):
        first = dropout_ops.dropout(ONES, 0.5)
        with dropout_ops.seed_scope([3, 4]):
            inner = dropout_ops.dropout(ONES, 0.5)
        second = dropout_ops.dropout(ONES, 0.5)
    np.testing.assert_array_equal([first, second], expected_outer)
    np.testing.assert_array_equal([inner], expected_inner)


def test_an_error_inside_closes_the_scope():
    with pytest.raises(RuntimeError, match="inside"), dropout_ops.seed_scope([1, 2]):
        raise RuntimeError("inside")
    assert differ(dropout_ops.new_seed(), dropout_ops.new_seed())


def test_a_scope_belongs_to_its_thread():
    seeds = []
    with dropout_ops.seed_scope([1, 2]):
        here = dropout_ops.new_seed()
        for _ in range(2):
            thread = threading.Thread(target=lambda: seeds.append(dropout_ops.new_seed()))
            thread.start()
            thread.join()
    assert differ(seeds[0], seeds[1]) and differ(seeds[0], here)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_seed_that_is_a_tensor_gives_the_same_masks_in_a_graph(jit_compile):
    @tf.function(jit_compile=jit_compile)
    def run(seed):
        with dropout_ops.seed_scope(seed):
            return [dropout_ops.dropout(ONES, 0.5) for _ in range(2)]

    for seed in ([1, 2], [5, 6]):
        np.testing.assert_array_equal(run(tf.constant(seed)), run(tf.constant(seed)))
    assert differ(run(tf.constant([1, 2])), run(tf.constant([5, 6])))


def test_a_64_bit_step_number_can_be_the_seed():
    with dropout_ops.seed_scope(tf.constant([7, 0], tf.int64)):
        assert dropout_ops.new_seed().dtype == tf.int32


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_a_share_of_the_elements_is_dropped_and_the_others_are_scaled(rate):
    with dropout_ops.seed_scope([1, 2]):
        output = dropout_ops.dropout(3 * np.ones([100_000], np.float32), rate).numpy()
    np.testing.assert_allclose(np.mean(output == 0), rate, atol=0.01)
    np.testing.assert_allclose(output[output != 0], 3 / (1 - rate), rtol=1e-6)


def test_rate_0_changes_nothing():
    np.testing.assert_array_equal(dropout_ops.dropout(ONES, 0), ONES)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_the_type_stays(dtype):
    assert dropout_ops.dropout(tf.ones([4], dtype), 0.5).dtype == dtype


def test_the_gradient_is_the_mask():
    x = tf.constant(ONES)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with dropout_ops.seed_scope([1, 2]):
            output = dropout_ops.dropout(x, 0.5)
    np.testing.assert_array_equal(tape.gradient(output, x), output)
