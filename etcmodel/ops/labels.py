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
    """Pairs labelled by key position minus query position, clipped to `max_distance`.

    All offsets beyond share one label on either side. So every pair gets the score of its side, and
    only a band of nearer offsets gets scores of its own, as differences from that.

    Attributes:
        layout: `layout.Layout` of the queries.
        max_distance: int, at least 1. For the labels see
            `feature_utils.RelativePositionGenerator`.
    """

    layout: object
    max_distance: int

    @property
    def _reach(self):
        """The first offset outside the band."""
        return min(self.max_distance, self.layout.radius)

    @property
    def _first_column(self):
        """Where the band of the first query begins among the keys."""
        return self.layout.own_column - self._reach + 1

    @property
    def _width(self):
        """Band scores of a query: zeros follow the band's own, which spare the shear a copy."""
        layout = self.layout
        return layout.block_len + (self._reach if layout.is_whole else 2 * self._reach - 1)

    def table_rows(self, table):
        """What scores are made for: the band's offsets, as many zeros as fit, and both sides."""
        reach = self._reach
        generator = feature_utils.RelativePositionGenerator(self.max_distance)
        rows = tf.gather(table, generator.make_local_relative_att_ids(1, reach)[0, 0])
        left, right = rows[:1], rows[-1:]
        band = tf.concat([rows[1:reach] - left, rows[reach:-1] - right], 0)
        num_zeros = windows.not_negative(self._width - (2 * reach - 1))
        return tf.concat([windows.pad_axis(band, 0, after=num_zeros), left, right], 0)

    def split(self, rows):
        """Band and sides of [num_heads, rows, ...]."""
        return [rows[:, :-2], rows[:, -2:]]

    def add(self, logits, scores, biases, adder, chunk):
        """`logits` with the labels' scores and biases and the mask's adder: float32."""
        return _add_sheared(
            logits,
            *scores,
            *biases,
            adder,
            own_column=self.layout.own_column,
            first_column=self._first_column,
        )

    def collect(self, gradient, chunk, num_labels):
        """The gradient of the scores from that of the pairs."""
        first, num_keys = self._first_column, tensor_utils.get_shape_list(gradient)[-1]
        right = tf.reduce_sum(_keep_right(gradient, own_column=self.layout.own_column), axis=-1)
        sides = tf.stack([tf.reduce_sum(gradient, axis=-1) - right, right], axis=-1)
        if first > 0:
            gradient = gradient[..., first : num_keys - first]
        return [windows.unshear(gradient, self._width, max(0, -first)), sides]


@compiled_elementwise
def _add_sheared(logits, band, sides, band_biases, side_biases, adder, *, own_column, first_column):
    *_, block_len, num_keys = tensor_utils.get_shape_list(logits)
    band = tf.cast(band, tf.float32) + band_biases
    sides = tf.cast(sides, tf.float32) + side_biases
    if first_column > 0:  # The band leaves as many columns on both sides of it.
        band = windows.shear(band, num_keys - 2 * first_column)
        paddings = [[0, 0]] * (len(band.shape) - 1) + [[first_column, first_column]]
        band = tf.pad(band, paddings)
    else:
        band = windows.shear(band, num_keys, -first_column)
    is_right = _is_right(block_len, num_keys, own_column)
    sides = tf.where(is_right, sides[..., 1:], sides[..., :1])
    return tf.cast(logits, tf.float32) + sides + band + adder


@compiled_elementwise
def _keep_right(gradient, *, own_column):
    *_, block_len, num_keys = tensor_utils.get_shape_list(gradient)
    is_right = _is_right(block_len, num_keys, own_column)
    return tf.where(is_right, gradient, tf.zeros([], gradient.dtype))


def _is_right(block_len, num_keys, own_column):
    """bool [block_len, num_keys]. Whether the key is not before the query."""
    return tf.range(num_keys) - own_column >= tf.range(block_len)[:, tf.newaxis]


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

    def split(self, rows):
        return [rows]

    def add(self, logits, scores, biases, adder, chunk):
        scores = tf.cast(scores[0], tf.float32) + biases[0]
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
        return [tf.einsum("hbnmk,bnmkr->hbnmr", gradient, one_hot)]

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

    def split(self, rows):
        return [rows]

    def add(self, logits, scores, biases, adder, chunk):
        scores = tf.cast(scores[0], tf.float32) + biases[0]
        return _add_linked(logits, scores, adder, self.links.linked(chunk))

    def collect(self, gradient, chunk, num_labels):
        linked = tf.reduce_sum(_keep(gradient, self.links.linked(chunk)), axis=-1)
        return [tf.stack([tf.reduce_sum(gradient, axis=-1) - linked, linked], axis=-1)]


@compiled_elementwise
def _add_linked(logits, scores, adder, linked):
    spread = tf.where(linked, scores[..., 1:], scores[..., :1])
    return tf.cast(logits, tf.float32) + spread + adder


@compiled_elementwise
def _keep(gradient, linked):
    return tf.where(linked, gradient, tf.zeros([], gradient.dtype))
