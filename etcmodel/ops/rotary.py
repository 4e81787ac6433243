"""Rotary positions (Su et al. 2021, arXiv:2104.09864): queries and keys turned by their positions.

The numbers i and i + size / 2 of a head are a pair, which is turned as a point of the plane, by the
position times a frequency of its own. So logits depend on the distance of query and key.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.gradients import custom_gradient
from etcmodel.ops.shapes import get_shape_list


class Turns(NamedTuple):
    """The angles of all positions and pairs.

    Attributes:
        cos, sin: float32 [batch or 1, length, size_per_head / 2].
    """

    cos: tf.Tensor
    sin: tf.Tensor


def turns_at(positions, size_per_head, theta):
    """Computes the `Turns` of positions.

    Frequencies and angles are rounded to float32, as in Hugging Face's models: exact ones would
    change the outputs at positions of several thousand.

    Args:
        positions: int [batch or 1, length].
        size_per_head: int, even.
        theta: float. The frequency of pair i is `theta ** (-2 * i / size_per_head)`.
    """
    exponents = np.arange(0, size_per_head, 2, dtype=np.float32) / np.float32(size_per_head)
    frequencies = np.float32(1) / np.float32(theta) ** exponents
    angles = tf.cast(positions, tf.float32)[..., tf.newaxis] * frequencies
    return Turns(tf.cos(angles), tf.sin(angles))


def turned_heads(projected, turns, num_heads):
    """Splits a joint projection into queries, keys and values, and turns the first two.

    Args:
        projected: float [batch, length, 3 * num_heads * size_per_head]: all queries' heads, then
            keys', then values'.
        turns: `Turns`.
        num_heads: int.
    Returns:
        (queries, keys, values): float [batch, length, num_heads, size_per_head] each.
    """

    @custom_gradient
    def run(projected, cos, sin):
        def grad(*gradients):
            return _joined(*gradients, cos, sin), None, None

        return _split(projected, cos, sin, num_heads=num_heads), grad

    return run(projected, *turns)


def heads_of(projected, num_heads):
    """Splits a joint projection like `turned_heads`, and turns nothing."""
    batch, length, size = get_shape_list(projected)
    parts = tf.reshape(projected, [batch, length, 3, num_heads, size // (3 * num_heads)])
    return tf.unstack(parts, axis=2)


@compiled_elementwise
def _split(projected, cos, sin, *, num_heads):
    queries, keys, values = heads_of(projected, num_heads)
    return _turned(queries, cos, sin), _turned(keys, cos, sin), values


@compiled_elementwise
def _joined(queries, keys, values, cos, sin):
    """The transpose of `_split`: turns back."""
    turned = [_turned(x, cos, -sin) for x in (queries, keys)]
    joined = tf.stack([*turned, values], axis=2)
    batch, length, *sizes = get_shape_list(joined)
    return tf.reshape(joined, [batch, length, sizes[0] * sizes[1] * sizes[2]])


def _turned(x, cos, sin):
    """Turns the pairs of [batch, length, num_heads, size_per_head], in float32."""
    cos, sin = cos[:, :, tf.newaxis], sin[:, :, tf.newaxis]
    first, second = tf.split(tf.cast(x, tf.float32), 2, axis=-1)
    turned = tf.concat([first * cos - second * sin, second * cos + first * sin], -1)
    return tf.cast(turned, x.dtype)
