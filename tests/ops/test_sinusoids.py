"""Sinusoids against NumPy's, also where float32 angles would be wrong."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops.sinusoids import sinusoids


@pytest.mark.parametrize("size", [4, 6, 64])
def test_values(size):
    positions = np.array([[0, 1, 2, 1023], [16383, 100_000, 5, 7]])
    angles = positions[..., np.newaxis] * 10000.0 ** (-np.arange(size // 2) / (size // 2 - 1))
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], -1)
    found = sinusoids(tf.constant(positions), size)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_half_precision_has_its_own_rounding_alone():
    positions = tf.range(15_000, 16_384)
    wanted = sinusoids(positions, 32)
    for dtype, digits in ((tf.bfloat16, 2**-8), (tf.float16, 2**-11)):
        found = tf.cast(sinusoids(positions, 32, dtype), tf.float32)
        np.testing.assert_allclose(found, wanted, atol=digits)
