"""Products with weights of 8 bits are those of whole numbers, row by row."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import int8

SIZES = st.integers(1, 40)


def twin(x, kernel, bias):
    """The same with whole numbers, one row after the other."""
    scales = np.maximum(np.abs(kernel).max(0), np.float32(1e-30)) / np.float32(63)
    weights = np.round(kernel / scales).astype(int)
    outputs = []
    for row in x:
        scale = max(np.abs(row).max(), np.float32(1e-30)) / np.float32(127)
        whole = np.floor(row * (np.float32(1) / scale) + np.float32(128.5)).astype(int) - 128
        outputs.append(whole @ weights * (scale * scales) + bias)
    return np.reshape(outputs, [-1, kernel.shape[1]])


@hypothesis.given(SIZES, SIZES, SIZES, st.integers(0, 99), st.sampled_from([1e-3, 1.0, 1e4]))
@hypothesis.settings(max_examples=30)
def test_products_are_those_of_whole_numbers(rows, size, units, seed, scale):
    random = np.random.default_rng(seed)
    x, kernel, bias = (
        random.standard_normal(shape, np.float32)
        for shape in ([rows, size], [size, units], [units])
    )
    x, bias = x * np.float32(scale), bias * np.float32(scale)
    x[rows // 2] = 0  # As of padding.
    found = int8.product(tf.constant(x), int8.quantized(kernel), tf.constant(bias))
    np.testing.assert_allclose(found, twin(x, kernel, bias), rtol=1e-5, atol=1e-5 * scale)
    found = int8.product(tf.constant(x), int8.quantized(kernel))
    np.testing.assert_allclose(found, twin(x, kernel, 0 * bias), rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_sums_are_not_cut_off(sign):
    """Of pairs of products in 16 bits, as processors with AVX2 add them."""
    kernel = int8.quantized(np.full([768, 48], 2.0, np.float32))
    found = int8.product(tf.fill([5, 768], 3.0 * sign), kernel)
    np.testing.assert_allclose(found, np.full([5, 48], 768 * 6.0 * sign), rtol=1e-6)


def test_no_row_depends_on_others():
    random = np.random.default_rng(0)
    x = tf.constant(random.standard_normal([9, 64], np.float32))
    kernel = int8.quantized(random.standard_normal([64, 48], np.float32))
    whole = int8.product(tf.concat([x, 1e3 * x], 0), kernel)[:9]
    parts = tf.concat([int8.product(x[i : i + 1], kernel) for i in range(9)], 0)
    np.testing.assert_array_equal(whole, parts)


def test_what_is_no_number_stays_in_its_row():
    x = np.ones([3, 8], np.float32)
    x[1, 2] = np.nan
    found = int8.product(tf.constant(x), int8.quantized(np.ones([8, 32], np.float32))).numpy()
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[[0, 2]], 8.0, rtol=1e-6)


def test_a_kernel_of_new_values_is_multiplied_by_these():
    """oneDNN may keep what it made of constant weights."""
    kernels = [np.full([64, 32], value, np.float32) for value in (1.0, -2.0)]
    variables = int8.Int8Kernel(*map(tf.Variable, int8.quantized(kernels[0])))
    product = tf.function(lambda x: int8.product(x, variables))
    x = tf.ones([4, 64])
    np.testing.assert_allclose(product(x), 64.0, rtol=1e-6)
    for variable, value in zip(variables, int8.quantized(kernels[1]), strict=True):
        variable.assign(value)
    np.testing.assert_allclose(product(x), -128.0, rtol=1e-6)


def test_there_may_be_no_row():
    assert int8.product(tf.zeros([0, 4]), int8.quantized(np.ones([4, 6], np.float32))).shape == (
        0,
        6,
    )
