"""Relative position labels and attention masks as dense tensors (paper, sections 3.1 and 3.2).

A "local" tensor holds for each of `seq_len` tokens the `2 * local_radius + 1` tokens around it:
column `j` belongs to the token `j - local_radius` places to the right.
"""

import tensorflow as tf

from etcmodel import tensor_utils

__all__ = [
    "RelativePositionGenerator",
    "make_att_mask_from_breakpoints",
    "make_att_mask_from_input_mask",
    "make_local_att_mask_from_breakpoints",
    "make_local_segmented_att_mask",
    "make_segmented_att_mask",
    "overwrite_relative_att_ids_outside_segments",
]


class RelativePositionGenerator:
    """Labels pairs of tokens by their clipped distance.

    The label is 0 for the token itself, 1 to `max_distance` for tokens on the right and
    `max_distance + 1` to `2 * max_distance` for tokens on the left (unless `ignore_direction`).

    Args:
        max_distance: int, at least 0. Tokens farther away get the label of this distance.
        ignore_direction: bool. Whether left and right get the same labels.
    Raises:
        ValueError: if `max_distance` is negative.
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
        """
        with tf.name_scope(name or "make_relative_att_ids"):
            _check_positive(seq_len=seq_len, batch_size=batch_size)
            position = tf.range(seq_len)
            ids = self._ids(position[tf.newaxis, :] - position[:, tf.newaxis])
            return tf.tile(ids[tf.newaxis], [batch_size, 1, 1])

    def make_local_relative_att_ids(self, seq_len, local_radius, batch_size=1, name=None):
        """Labels of the pairs within the radius: int32 [batch_size, seq_len, 2*local_radius + 1].

        Raises:
            ValueError: if an argument is an int below 1.
        """
        with tf.name_scope(name or "make_local_relative_att_ids"):
            _check_positive(seq_len=seq_len, local_radius=local_radius, batch_size=batch_size)
            ids = self._ids(tf.range(-local_radius, local_radius + 1))
            return tf.tile(ids[tf.newaxis, tf.newaxis], [batch_size, seq_len, 1])

    def _ids(self, distance):
        """Labels of signed distances (positive: to the right)."""
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
        ValueError: if the tensors have other numbers of axes.
    """
    with tf.name_scope(name or "overwrite_relative_att_ids_outside_segments"):
        rel_att_ids, segment_ids = map(tf.convert_to_tensor, (rel_att_ids, segment_ids))
        tensor_utils.assert_rank(rel_att_ids, 3, "rel_att_ids")
        tensor_utils.assert_rank(segment_ids, 2, "segment_ids")
        same = tf.equal(segment_ids[:, :, tf.newaxis], segment_ids[:, tf.newaxis, :])
        return tf.where(same, rel_att_ids, tf.cast(overwrite_value, rel_att_ids.dtype))


def make_att_mask_from_input_mask(input_mask, name=None):
    """Real tokens see real tokens, padding sees padding.

    Args:
        input_mask: int [batch, seq_len]. 1 for real tokens, 0 for padding.
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, seq_len]. 1 where attention is allowed.
    """
    return make_segmented_att_mask(input_mask, name=name or "make_att_mask_from_input_mask")


def make_segmented_att_mask(segment_ids, name=None):
    """Each token sees the tokens of its own segment.

    Args:
        segment_ids: int [batch, seq_len].
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, seq_len]. 1 where attention is allowed.
    """
    with tf.name_scope(name or "make_segmented_att_mask"):
        segment_ids = tf.convert_to_tensor(segment_ids)
        tensor_utils.assert_rank(segment_ids, 2, "segment_ids")
        same = tf.equal(segment_ids[:, :, tf.newaxis], segment_ids[:, tf.newaxis, :])
        return tf.cast(same, tf.int32)


def make_att_mask_from_breakpoints(att_breakpoints, use_starting_breakpoints=False, name=None):
    """Each token sees the tokens between the same two breakpoints.

    Args:
        att_breakpoints: int [batch, seq_len]. 1 at the last token of each segment (at the first
            one, if `use_starting_breakpoints`), 0 elsewhere.
        use_starting_breakpoints: bool.
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, seq_len]. 1 where attention is allowed.
    """
    with tf.name_scope(name or "make_att_mask_from_breakpoints"):
        return make_segmented_att_mask(
            segment_ids_from_breakpoints(att_breakpoints, use_starting_breakpoints)
        )


def make_local_segmented_att_mask(segment_ids, local_radius, name=None):
    """Each token sees the tokens of its own segment within the radius.

    Args:
        segment_ids: int [batch, seq_len].
        local_radius: int, at least 1. Tokens visible on each side.
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, 2 * local_radius + 1]. 1 where attention is allowed; 0 beyond the
        ends of the sequence.
    """
    with tf.name_scope(name or "make_local_segmented_att_mask"):
        _check_positive(local_radius=local_radius)
        segment_ids = tf.convert_to_tensor(segment_ids)
        tensor_utils.assert_rank(segment_ids, 2, "segment_ids")
        window = local_window(segment_ids, local_radius)
        inside = local_window(tf.ones_like(segment_ids), local_radius)
        return tf.cast(tf.equal(window, segment_ids[:, :, tf.newaxis]), tf.int32) * tf.cast(
            inside, tf.int32
        )


def make_local_att_mask_from_breakpoints(
    att_breakpoints, local_radius, use_starting_breakpoints=False, name=None
):
    """As `make_local_segmented_att_mask`, from breakpoints (`make_att_mask_from_breakpoints`)."""
    with tf.name_scope(name or "make_local_att_mask_from_breakpoints"):
        return make_local_segmented_att_mask(
            segment_ids_from_breakpoints(att_breakpoints, use_starting_breakpoints), local_radius
        )


def segment_ids_from_breakpoints(att_breakpoints, use_starting_breakpoints=False):
    """Numbers the segments between breakpoints: int32 [batch, seq_len].

    The numbers rise to the right with starting breakpoints and to the left with ending ones.
    """
    breakpoints = tf.cast(att_breakpoints, tf.int32)
    return tf.cumsum(breakpoints, axis=-1, reverse=not use_starting_breakpoints)


def local_window(values, local_radius):
    """What each token has around it; 0 beyond the ends.

    Args:
        values: [batch, seq_len].
        local_radius: int. Tokens on each side.
    Returns:
        [batch, seq_len, 2 * local_radius + 1].
    """
    padded = tf.pad(values, [[0, 0], [local_radius, local_radius]])
    seq_len = tensor_utils.get_shape_list(values)[1]
    index = tf.range(seq_len)[:, tf.newaxis] + tf.range(2 * local_radius + 1)[tf.newaxis]
    return tf.gather(padded, index, axis=1)


def _check_positive(**sizes):
    for name, size in sizes.items():
        if isinstance(size, int) and size < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={size}")
