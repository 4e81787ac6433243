"""Masks: which pairs within reach may attend, and the attention bias that follows."""

import abc
import dataclasses
from typing import Protocol

import tensorflow as tf

from etcmodel.ops import argument_checks, pair_values

__all__ = [
    "MASKED_LOGIT",
    "CausalMask",
    "KeyMask",
    "LinkMask",
    "Mask",
    "SegmentMask",
    "ValueMask",
    "attention_bias",
]

# Added to the logits of pairs that may not attend. Not -infinity: a query without any allowed key
# then averages over its keys instead of giving NaN (as in the paper).
MASKED_LOGIT = -10000.0


class Mask(Protocol):
    """Allows pairs to attend. A pair must be allowed by all masks of its key set."""

    @abc.abstractmethod
    def prepare(self, view):
        """Returns the same mask for a `reach.View`: tensors arranged as its rows and keys."""

    @abc.abstractmethod
    def allowed(self, pairs):
        """Marks the pairs of a step that may attend.

        Args:
            pairs: `reach.Pairs`.
        Returns:
            bool, broadcasts to [batch, tiles, rows, window].
        """


@dataclasses.dataclass(frozen=True)
class ValueMask:
    """A mask given as values.

    Attributes:
        values: `pair_values.PairValues` of bool or 0/1 int.
    """

    values: pair_values.PairValues

    def prepare(self, view):
        return ValueMask(self.values.prepare(view))

    def allowed(self, pairs):
        return tf.cast(self.values.of(pairs), tf.bool)


@dataclasses.dataclass(frozen=True)
class SegmentMask:
    """Queries attend to the keys of their own segment.

    Attributes:
        query_ids: int [batch, num_rows].
        key_ids: int [batch, num_keys].
    """

    query_ids: tf.Tensor
    key_ids: tf.Tensor

    def prepare(self, view):
        return SegmentMask(view.tiles.arrange(self.query_ids), view.arrange(self.key_ids))

    def allowed(self, pairs):
        queries, keys = pairs.queries(self.query_ids), pairs.keys(self.key_ids)
        return tf.equal(queries[..., tf.newaxis], keys[:, :, tf.newaxis])


@dataclasses.dataclass(frozen=True)
class KeyMask:
    """All queries attend to the same keys.

    Attributes:
        mask: bool or 0/1 int [batch, num_keys]. Other values are refused in `prepare`.

    >>> from etcmodel.ops import blockwise, key_sets, masks
    >>> mask = masks.KeyMask(tf.constant([[1, 1, 0]]))
    >>> keys = key_sets.KeySet(tf.zeros([1, 3, 1, 8]), tf.eye(3)[None, :, None], masks=(mask,))
    >>> blockwise.attend(tf.zeros([1, 1, 1, 8]), [keys])[0, :, 0].numpy()
    array([[0.5, 0.5, 0. ]], dtype=float32)
    """

    mask: tf.Tensor

    def prepare(self, view):
        mask = argument_checks.mask_of("mask", self.mask)
        return KeyMask(view.arrange(tf.cast(mask, tf.int32)))

    def allowed(self, pairs):
        return tf.not_equal(pairs.keys(self.mask), 0)[:, :, tf.newaxis]


@dataclasses.dataclass(frozen=True)
class CausalMask:
    """Queries attend to the keys at their own position and before."""

    def prepare(self, view):
        return self

    def allowed(self, pairs):
        return (pairs.key_positions() <= pairs.query_positions())[tf.newaxis]


@dataclasses.dataclass(frozen=True)
class LinkMask:
    """Queries attend only to the keys that they are linked to.

    Attributes:
        links: tuple of `structure.Links`. A pair is linked if any of them links it.
        ignored_rows: bool or 0/1 int [batch or 1, num_rows] or None. Exceptions: queries that
            attend to all keys.
    """

    links: tuple
    ignored_rows: tf.Tensor | None = None

    def prepare(self, view):
        ignored = self.ignored_rows
        if ignored is not None:
            ignored = argument_checks.mask_of("ignored_rows", ignored)
            ignored = view.tiles.arrange(tf.cast(ignored, tf.int32))
        return LinkMask(tuple(x.prepare(view) for x in self.links), ignored)

    def allowed(self, pairs):
        allowed = [x.linked(pairs) for x in self.links]
        if self.ignored_rows is not None:
            ignored = tf.not_equal(pairs.queries(self.ignored_rows), 0)
            allowed.append(ignored[..., tf.newaxis])
        if not allowed:
            return tf.zeros([1, 1, 1, 1], tf.bool)
        return _joined(tf.logical_or, allowed)


def attention_bias(masks, pairs):
    """Computes the attention bias of masks and reach: float32, or None if all pairs attend.

    It broadcasts to [batch, tiles, rows, window].

    Args:
        masks: tuple of prepared `Mask`.
        pairs: `reach.Pairs`.
    """
    bias = None
    if masks:
        allowed = _joined(tf.logical_and, [_allowed(mask, pairs) for mask in masks])
        bias = tf.where(allowed, 0.0, MASKED_LOGIT)
    exists = pairs.view.exists(pairs.step)
    if exists is None:
        return bias
    bias = tf.zeros([1, 1, 1, 1]) if bias is None else bias
    return tf.where(exists, bias, pairs.view.reach.outside)


def _allowed(mask, pairs):
    """The result of `Mask.allowed`, which is checked."""
    allowed = mask.allowed(pairs)
    argument_checks.check_returned(f"{type(mask).__name__}.allowed", allowed, tf.bool)
    return allowed


def _joined(operation, tensors):
    result = tensors[0]
    for x in tensors[1:]:
        result = operation(result, x)
    return result
