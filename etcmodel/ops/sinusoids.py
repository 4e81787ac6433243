"""Embeddings of positions that are not learned."""

import tensorflow as tf

__all__ = ["sinusoids"]


def sinusoids(positions, size, dtype=tf.float32):
    """Sines in the first half, cosines in the second, of wavelengths from 2 pi to 20000 pi.

    The wavelengths are those of PEGASUS-X (Phang et al. 2022): the last one is the longest. The
    angles are float64, since those of positions beyond 1000 have few digits left in float32 and
    none in half precision.

    Args:
        positions: int [...].
        size: int, even and at least 4.
        dtype: of the result.
    Returns:
        [..., size].
    """
    half = size // 2
    exponents = tf.range(half, dtype=tf.float64) / (half - 1)
    frequencies = tf.pow(tf.constant(1e4, tf.float64), -exponents)
    angles = tf.cast(positions, tf.float64)[..., tf.newaxis] * frequencies
    return tf.cast(tf.concat([tf.sin(angles), tf.cos(angles)], -1), dtype)
