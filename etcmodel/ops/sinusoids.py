"""Sinusoidal positions: as embeddings, and as relative positions of keys."""

import dataclasses

import tensorflow as tf

from etcmodel.ops import labels as labels_ops
from etcmodel.ops.offsets import WindowOffsets

# Sinusoidal position embeddings, which are not learned.


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


# Transformer-XL's relative positions in sliding windows (Dai et al. 2019, section 3.3).
#
# The logit of a query q and a key k at distance d before it is (q + u) . k + (q + v) . r(d), where
# r(d) is a projection of the sinusoids of d. With q + u in place of the query, the second part is
# (q + u) . r(d) + (v - u) . r(d): a label for each distance, with an embedding and a bias.


@dataclasses.dataclass(frozen=True)
class SinusoidPositions:
    """Relative positions that logits in windows depend on besides queries and keys.

    All are float32: only the projected sinusoids are rounded.

    Attributes:
        projection: float [hidden_size, num_heads, size_per_head]. Projects sinusoids of that size,
            which must be even, without a bias.
        content_bias: float [num_heads, size_per_head]. u, added to queries for products with keys.
        position_bias: float [num_heads, size_per_head]. v, added for products with distances.
    """

    projection: tf.Tensor
    content_bias: tf.Tensor
    position_bias: tf.Tensor

    def queries(self, queries):
        """Returns the queries [batch, length, num_heads, size_per_head] to use with `labels`."""
        return queries + tf.cast(self.content_bias, queries.dtype)

    def labels(self, window, heads):
        """Returns the `labels.Labels` of the pairs of a window.

        Args:
            window: `reach.Window`.
            heads: list of int. The numbers of the heads with this window.
        """
        offsets = tf.range(-window.left, window.right + 1) * window.dilation
        waves = distance_sinusoids(-offsets, self.projection.shape[0])
        projection, difference = self.projection, self.position_bias - self.content_bias
        if len(heads) < projection.shape[1]:
            projection = tf.gather(projection, heads, axis=1)
            difference = tf.gather(difference, heads)
        embeddings = tf.einsum("om,mhs->ohs", waves, projection)
        biases = tf.einsum("ohs,hs->oh", embeddings, difference)
        tables = labels_ops.LabelTables(embeddings, biases)
        function = WindowOffsets(window.left, window.right, window.dilation)
        return labels_ops.OffsetLabels(tables, function)
