"""Transformer-XL's relative positions in sliding windows (Dai et al. 2019, section 3.3).

The logit of a query q and a key k at distance d before it is (q + u) . k + (q + v) . r(d), where
r(d) is a projection of the sinusoids of d. With q + u in place of the query, the second part is
(q + u) . r(d) + (v - u) . r(d): a label for each distance, with an embedding and a bias.
"""

import dataclasses

import tensorflow as tf

from etcmodel.ops import labels as labels_ops
from etcmodel.ops import sinusoids
from etcmodel.ops.offsets import WindowOffsets

__all__ = ["SinusoidPositions"]


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
        waves = sinusoids.distance_sinusoids(-offsets, self.projection.shape[0])
        projection, difference = self.projection, self.position_bias - self.content_bias
        if len(heads) < projection.shape[1]:
            projection = tf.gather(projection, heads, axis=1)
            difference = tf.gather(difference, heads)
        embeddings = tf.einsum("om,mhs->ohs", waves, projection)
        biases = tf.einsum("ohs,hs->oh", embeddings, difference)
        tables = labels_ops.LabelTables(embeddings, biases)
        function = WindowOffsets(window.left, window.right, window.dilation)
        return labels_ops.OffsetLabels(tables, function)
