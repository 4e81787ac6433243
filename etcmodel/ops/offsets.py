"""Functions from offsets (key position minus query position) to labels."""

import dataclasses
import math
from typing import Protocol

import tensorflow as tf


class OffsetFunction(Protocol):
    """The interface of labels by offset.

    Attributes:
        max_distance: int. On each side, all offsets of at least this distance have the same label.
    """

    max_distance: int

    def labels(self, offsets):
        """int32 labels of int32 offsets of any shape."""


@dataclasses.dataclass(frozen=True)
class ClippedOffsets(OffsetFunction):
    """A label for each offset up to `max_distance` (Shaw et al. 2018; paper, section 3.1).

    0 for the token itself, 1 to `max_distance` for keys after it and `max_distance + 1` to
    `2 * max_distance` for keys before it.
    """

    max_distance: int

    def labels(self, offsets):
        clipped = tf.minimum(tf.abs(offsets), self.max_distance)
        return tf.where(offsets < 0, clipped + self.max_distance, clipped)


@dataclasses.dataclass(frozen=True)
class WindowOffsets(OffsetFunction):
    """A label for each key of a window, from left to right; `left` is that of the query itself.

    Other offsets, which a window does not have, get the label of a nearby one.

    Attributes:
        left: int, at least 0. Keys before the query's own.
        right: int, at least 0. Keys after it.
        dilation: int, at least 1. Distance between neighboring keys.
    """

    left: int
    right: int
    dilation: int = 1

    @property
    def max_distance(self):
        return max(self.left, self.right, 1) * self.dilation

    def labels(self, offsets):
        return tf.clip_by_value(offsets // self.dilation, -self.left, self.right) + self.left


@dataclasses.dataclass(frozen=True)
class LogBuckets(OffsetFunction):
    """T5's relative position buckets (Raffel et al. 2020, section 2.1).

    On each side the first buckets contain one offset each, the others logarithmically more. Keys
    after the query have the second half of the buckets.
    """

    num_buckets: int = 32
    max_distance: int = 128

    def labels(self, offsets):
        half = self.num_buckets // 2
        return tf.where(offsets > 0, half, 0) + _log_bucket(
            tf.abs(offsets), half, self.max_distance
        )


@dataclasses.dataclass(frozen=True)
class CausalLogBuckets(OffsetFunction):
    """T5's buckets in a decoder: all are for keys before the query; later keys have bucket 0."""

    num_buckets: int = 32
    max_distance: int = 128

    def labels(self, offsets):
        distance = tf.maximum(-offsets, 0)
        return _log_bucket(distance, self.num_buckets, self.max_distance)


def _log_bucket(distance, num_buckets, max_distance):
    exact = num_buckets // 2
    # In float32, as in T5: rounding decides which bucket the borders belong to.
    ratio = tf.cast(tf.maximum(distance, 1), tf.float32) / exact
    share = tf.math.log(ratio) / math.log(max_distance / exact)
    large = exact + tf.cast(share * (num_buckets - exact), tf.int32)
    return tf.where(distance < exact, distance, tf.minimum(large, num_buckets - 1))
