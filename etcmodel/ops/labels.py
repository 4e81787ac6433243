"""Relative labels of pairs of tokens: from scores by label to scores by pair, and back.

A query's label scores are `query . label_embedding + label_bias` for each of a few labels (paper,
appendix A). A spread says which of them each pair gets. The pairs of a chunk of queries are
[num_heads, batch, blocks, rows, keys].
"""

import dataclasses

import tensorflow as tf

from etcmodel import feature_utils, tensor_utils
from etcmodel.ops import windows
from etcmodel.ops.compilation import compiled_elementwise

__all__ = ["IdSpread", "LinkSpread", "OffsetSpread"]


@dataclasses.dataclass(frozen=True)
class OffsetSpread:
    """Pairs labelled by key position minus query position, from `-radius` to `radius`.

    Attributes:
        radius: int or scalar tensor.
        max_distance: int. Offsets are clipped here; for their labels see
            `feature_utils.RelativePositionGenerator`.
        width: int or scalar tensor, at least `2 * radius + 1`. Scores to make: zeros to the right
            of the offsets, which spare the shear a copy.
    """

    radius: object
    max_distance: int
    width: object

    def table_rows(self, table):
        """The rows of the tables that scores are made for, one an offset."""
        generator = feature_utils.RelativePositionGenerator(self.max_distance)
        ids = generator.make_local_relative_att_ids(1, self.radius)
        rows = tf.gather(table, ids[0, 0])
        return windows.pad_axis(rows, 0, after=self.width - 2 * self.radius - 1)

    def add(self, logits, scores, biases, adder, chunk):
        """`logits` with the labels' scores and biases and the mask's adder: float32."""
        return _add_sheared(logits, scores, biases, adder, first_column=chunk.first_column)

    def collect(self, gradient, chunk, num_labels):
        """The gradient of the scores from that of the pairs."""
        return windows.unshear(gradient, self.width, chunk.first_column)


@compiled_elementwise
def _add_sheared(logits, scores, biases, adder, *, first_column):
    scores = tf.cast(scores, tf.float32) + biases
    spread = windows.shear(scores, tensor_utils.get_shape_list(logits)[-1], first_column)
    return tf.cast(logits, tf.float32) + spread + adder


@dataclasses.dataclass(frozen=True)
class IdSpread:
    """Pairs labelled by id, as the dense side inputs of the release are.

    Attributes:
        ids: int32 [batch, rows, keys], or [batch, rows, 2 * radius + 1] with `by_offset`.
        by_offset: bool. Whether the last axis of `ids` is an offset.
        use_one_hot_lookup: bool. Spread by matrix products rather than gathers, for TPUs.
    """

    ids: tf.Tensor
    by_offset: bool = False
    use_one_hot_lookup: bool = False

    def table_rows(self, table):
        return table

    def add(self, logits, scores, biases, adder, chunk):
        scores = tf.cast(scores, tf.float32) + biases
        ids = self._pairs(chunk, tensor_utils.get_shape_list(logits)[-1])
        by_query = tf.transpose(scores, [1, 2, 3, 4, 0])  # [batch, blocks, rows, label, head]
        if self.use_one_hot_lookup:
            one_hot = tf.one_hot(ids, tensor_utils.get_shape_list(scores)[-1], dtype=scores.dtype)
            pairs = tf.einsum("bnmrh,bnmkr->hbnmk", by_query, one_hot)
        else:
            pairs = tf.transpose(tf.gather(by_query, ids, batch_dims=3), [4, 0, 1, 2, 3])
        return _add(logits, pairs, adder)

    def collect(self, gradient, chunk, num_labels):
        ids = self._pairs(chunk, tensor_utils.get_shape_list(gradient)[-1])
        one_hot = tf.one_hot(ids, num_labels, dtype=gradient.dtype)
        return tf.einsum("hbnmk,bnmkr->hbnmr", gradient, one_hot)

    def _pairs(self, chunk, num_keys):
        """[batch, blocks, block_len, keys]; label 0 for keys that have none."""
        ids = chunk.rows_of(self.ids)
        return windows.shear(ids, num_keys, chunk.first_column) if self.by_offset else ids


@compiled_elementwise
def _add(logits, scores, adder):
    return tf.cast(logits, tf.float32) + tf.cast(scores, tf.float32) + adder


@dataclasses.dataclass(frozen=True)
class LinkSpread:
    """Pairs labelled by whether a long token is linked to a global token.

    Attributes:
        links: `masks.Links`.
        labels: (int, int). The labels of pairs that are not and that are linked.
    """

    links: object
    labels: tuple

    def table_rows(self, table):
        return tf.gather(table, list(self.labels))

    def add(self, logits, scores, biases, adder, chunk):
        scores = tf.cast(scores, tf.float32) + biases
        return _add_linked(logits, scores, adder, self.links.linked(chunk))

    def collect(self, gradient, chunk, num_labels):
        linked = tf.reduce_sum(_keep(gradient, self.links.linked(chunk)), axis=-1)
        return tf.stack([tf.reduce_sum(gradient, axis=-1) - linked, linked], axis=-1)


@compiled_elementwise
def _add_linked(logits, scores, adder, linked):
    spread = tf.where(linked, scores[..., 1:], scores[..., :1])
    return tf.cast(logits, tf.float32) + spread + adder


@compiled_elementwise
def _keep(gradient, linked):
    return tf.where(linked, gradient, tf.zeros([], gradient.dtype))
