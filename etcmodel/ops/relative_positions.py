"""Relative position labels as dense tensors (paper, section 3.1)."""

import tensorflow as tf

from etcmodel.ops.shapes import assert_rank, check_positive


class RelativePositionGenerator:
    """Labels pairs of tokens by their clipped distance.

    The label is 0 for the token itself, 1 to `max_distance` for tokens on the right and
    `max_distance + 1` to `2 * max_distance` for tokens on the left (unless `ignore_direction`).

    Args:
        max_distance: int, at least 0. Tokens farther away get the label of this distance.
        ignore_direction: bool. Whether left and right get the same labels.
    Raises:
        ValueError: if `max_distance` is negative.

    >>> from etcmodel import feature_utils
    >>> generator = feature_utils.RelativePositionGenerator(max_distance=2)
    >>> generator.make_relative_att_ids(seq_len=4).numpy()[0]
    array([[0, 1, 2, 2],
           [3, 0, 1, 2],
           [4, 3, 0, 1],
           [4, 4, 3, 0]], dtype=int32)
    """

    def __init__(self, max_distance, ignore_direction=False):
        if max_distance < 0:
            raise ValueError(f"`max_distance` must not be negative. Received: {max_distance=}")
        self.max_distance = max_distance
        self.ignore_direction = ignore_direction
        self.right_pad_value = max_distance
        self.left_pad_value = max_distance if ignore_direction else 2 * max_distance
        self.relative_vocab_size = self.left_pad_value + 1

    def make_relative_att_ids(self, seq_len, batch_size=1, name=None):
        """Labels of all pairs: int32 [batch_size, seq_len, seq_len].

        Raises:
            ValueError: if `seq_len` is an int below 1.

        >>> from etcmodel import feature_utils
        >>> generator = feature_utils.RelativePositionGenerator(max_distance=2)
        >>> generator.make_relative_att_ids(seq_len=3, batch_size=2).shape
        TensorShape([2, 3, 3])
        """
        with tf.name_scope(name or "make_relative_att_ids"):
            check_positive(seq_len=seq_len, batch_size=batch_size)
            position = tf.range(seq_len)
            ids = self._ids(position[tf.newaxis, :] - position[:, tf.newaxis])
            return tf.tile(ids[tf.newaxis], [batch_size, 1, 1])

    def make_local_relative_att_ids(self, seq_len, local_radius, batch_size=1, name=None):
        """Labels of the pairs within the radius: int32 [batch_size, seq_len, 2*local_radius + 1].

        Raises:
            ValueError: if an argument is an int below 1.

        >>> from etcmodel import feature_utils
        >>> generator = feature_utils.RelativePositionGenerator(max_distance=2)
        >>> generator.make_local_relative_att_ids(seq_len=3, local_radius=1).numpy().tolist()
        [[[3, 0, 1], [3, 0, 1], [3, 0, 1]]]
        """
        with tf.name_scope(name or "make_local_relative_att_ids"):
            check_positive(seq_len=seq_len, local_radius=local_radius, batch_size=batch_size)
            ids = self._ids(tf.range(-local_radius, local_radius + 1))
            return tf.tile(ids[tf.newaxis, tf.newaxis], [batch_size, seq_len, 1])

    def _ids(self, distance):
        """Labels of signed distances, positive to the right."""
        clipped = tf.minimum(tf.abs(distance), self.max_distance)
        if self.ignore_direction:
            return clipped
        return tf.where(distance < 0, clipped + self.max_distance, clipped)


def overwrite_relative_att_ids_outside_segments(
    rel_att_ids, segment_ids, overwrite_value, name=None
):
    """Replaces the labels of pairs of tokens from different segments.

    Args:
        rel_att_ids: int [batch, seq_len, seq_len] (batch may be 1).
        segment_ids: int [batch, seq_len].
        overwrite_value: int.
        name: name of the operation.
    Returns:
        int [batch, seq_len, seq_len].
    Raises:
        ValueError: if a tensor has another rank.

    >>> from etcmodel import feature_utils
    >>> ids = feature_utils.RelativePositionGenerator(max_distance=2).make_relative_att_ids(3)
    >>> feature_utils.overwrite_relative_att_ids_outside_segments(ids, [[7, 7, 8]], 9).numpy()[0]
    array([[0, 1, 9],
           [3, 0, 9],
           [9, 9, 0]], dtype=int32)
    """
    with tf.name_scope(name or "overwrite_relative_att_ids_outside_segments"):
        rel_att_ids, segment_ids = map(tf.convert_to_tensor, (rel_att_ids, segment_ids))
        assert_rank(rel_att_ids, 3, "rel_att_ids")
        assert_rank(segment_ids, 2, "segment_ids")
        same = tf.equal(segment_ids[:, :, tf.newaxis], segment_ids[:, tf.newaxis, :])
        return tf.where(same, rel_att_ids, tf.cast(overwrite_value, rel_att_ids.dtype))
