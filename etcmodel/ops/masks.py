"""Which query may see which key: what is added to the logits of a chunk."""

import dataclasses

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.ops import windows

__all__ = ["DenseMask", "LinkMask", "Links", "SegmentMask", "full_adder", "local_adder"]

# Added to the logits of pairs that may not attend. Not -infinity: a query without any allowed key
# then averages over its keys instead of giving NaN (as in the paper).
MASKED_LOGIT = -10000.0
# Of pairs that are no pairs at all (beyond the window or the input): never seen, even then.
_OUTSIDE_LOGIT = -1e9


@dataclasses.dataclass(frozen=True)
class DenseMask:
    """An explicit mask.

    Attributes:
        mask: bool or 0/1 int [batch, rows, keys], or [batch, rows, 2 * radius + 1] with
            `by_offset`.
        by_offset: bool.
    """

    mask: tf.Tensor
    by_offset: bool = False

    def allowed(self, chunk, num_keys):
        mask = tf.cast(chunk.rows_of(self.mask), tf.int32)
        if self.by_offset:
            mask = windows.shear(mask, num_keys, chunk.first_column)
        return tf.not_equal(mask, 0)


@dataclasses.dataclass(frozen=True)
class SegmentMask:
    """Queries see the keys of their own segment.

    Attributes:
        query_ids: int [batch, rows].
        key_ids: int [batch, keys], padded by the margin on both sides where keys are `windowed`.
        windowed: bool.
    """

    query_ids: tf.Tensor
    key_ids: tf.Tensor
    windowed: bool = False

    def allowed(self, chunk, num_keys):
        queries = chunk.rows_of(self.query_ids)[..., tf.newaxis]
        keys = chunk.windows_of(self.key_ids, 1) if self.windowed else self.key_ids[:, tf.newaxis]
        return tf.equal(queries, keys[:, :, tf.newaxis])


@dataclasses.dataclass(frozen=True)
class Links:
    """Long tokens linked to global tokens.

    Attributes:
        ids: tuple of int [batch, long_len]. Indices of global tokens; others link nothing.
        num_global: int or scalar tensor.
        by_global: bool. Whether the queries are the global tokens, not the long ones.
    """

    ids: tuple
    num_global: object
    by_global: bool = False

    def linked(self, chunk):
        """bool [batch, blocks, block_len, keys]."""
        if self.by_global:
            rows = chunk.row_positions()[tf.newaxis, :, :, tf.newaxis]
            pairs = [tf.equal(ids[:, tf.newaxis, tf.newaxis], rows) for ids in self.ids]
        else:
            keys = tf.range(self.num_global)
            pairs = [tf.equal(chunk.rows_of(ids)[..., tf.newaxis], keys) for ids in self.ids]
        return _any(pairs)


@dataclasses.dataclass(frozen=True)
class LinkMask:
    """Queries see only what they are linked to.

    Attributes:
        links: `Links`.
        ignored_rows: bool or 0/1 int [batch, rows] or None. Queries that see all keys even so.
    """

    links: Links
    ignored_rows: tf.Tensor | None = None

    def allowed(self, chunk, num_keys):
        linked = self.links.linked(chunk)
        if self.ignored_rows is None:
            return linked
        ignored = tf.not_equal(tf.cast(chunk.rows_of(self.ignored_rows), tf.int32), 0)
        return linked | ignored[..., tf.newaxis]


def full_adder(masks, chunk, num_keys):
    """For keys that all queries share: float32, broadcast to [batch, blocks, block_len, keys]."""
    if not masks:
        return tf.zeros([1, 1, 1, 1])
    return tf.where(_all(masks, chunk, num_keys), 0.0, MASKED_LOGIT)


def local_adder(masks, chunk):
    """Likewise for windows of keys."""
    rows = chunk.row_positions()[:, :, tf.newaxis]
    keys = chunk.window_positions()[:, tf.newaxis]
    is_pair = (keys >= 0) & (keys < chunk.layout.num_rows)
    is_pair &= tf.abs(rows - keys) <= chunk.layout.radius
    window = tensor_utils.get_shape_list(keys)[-1]
    inside = tf.where(_all(masks, chunk, window), 0.0, MASKED_LOGIT) if masks else 0.0
    outside = MASKED_LOGIT if chunk.layout.averages_outside else _OUTSIDE_LOGIT
    return tf.where(is_pair[tf.newaxis], inside, outside)


def _all(masks, chunk, num_keys):
    allowed = masks[0].allowed(chunk, num_keys)
    for mask in masks[1:]:
        allowed &= mask.allowed(chunk, num_keys)
    return allowed


def _any(pairs):
    linked = pairs[0]
    for more in pairs[1:]:
        linked |= more
    return linked
