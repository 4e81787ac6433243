"""Sinusoidal position embeddings, which are not learned."""

import tensorflow as tf

__all__ = ["distance_sinusoids", "sinusoids"]


def sinusoids(positions, size, dtype=tf.float32):
    """Sinusoids: sines, then cosines, of wavelengths from 2 pi to 20000 pi.

    The wavelengths are those of PEGASUS-X (Phang et al. 2022): the last one is the longest. The
    angles are float64, since those of positions beyond 1000 have few digits left in float32 and
    none in half precision.

    Args:
        positions: int [...].
        size: int, even and at least 4.
        dtype: dtype of the result.
    Returns:
        [..., size].
    """
    return _sines_and_cosines(positions, size // 2, size // 2 - 1, dtype)


def distance_sinusoids(distances, size, dtype=tf.float32):
    """Like `sinusoids`, with Transformer-XL's wavelengths (Dai et al. 2019): all below 20000 pi.

    Args:
        distances: int [...]. Negative for keys after the query.
        size: int, even.
        dtype: dtype of the result.
    Returns:
        [..., size].
    """
    return _sines_and_cosines(distances, size // 2, size // 2, dtype)


def _sines_and_cosines(positions, half, steps, dtype):
    """Of frequencies that decrease from 1 to 1e-4 in so many steps."""
    exponents = tf.range(half, dtype=tf.float64) / steps
    frequencies = tf.pow(tf.constant(1e4, tf.float64), -exponents)
    angles = tf.cast(positions, tf.float64)[..., tf.newaxis] * frequencies
    return tf.cast(tf.concat([tf.sin(angles), tf.cos(angles)], -1), dtype)
