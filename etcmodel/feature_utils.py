"""Relative position labels and attention masks as dense tensors (paper, sections 3.1 and 3.2).

A "local" tensor has, for each of `seq_len` tokens, the `2 * local_radius + 1` tokens around it:
column `j` belongs to the token `j - local_radius` positions to the right.
"""

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.ops import argument_checks
from etcmodel.ops.relative_positions import (
    RelativePositionGenerator,
    overwrite_relative_att_ids_outside_segments,
)
from etcmodel.ops.shapes import check_positive

__all__ = [
    "RelativePositionGenerator",
    "make_att_mask_from_breakpoints",
    "make_att_mask_from_input_mask",
    "make_local_att_mask_from_breakpoints",
    "make_local_segmented_att_mask",
    "make_segmented_att_mask",
    "overwrite_relative_att_ids_outside_segments",
]

INPUT_MASK_KINDS = ("padding", "a token")  # Of 0 and 1, as named in errors.


def make_att_mask_from_input_mask(input_mask, name=None):
    """Makes an attention mask in which real tokens attend to real tokens, and padding to padding.

    Args:
        input_mask: int [batch, seq_len]. 1 for real tokens, 0 for padding.
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, seq_len]. 1 where attention is allowed.

    >>> from etcmodel import feature_utils
    >>> feature_utils.make_att_mask_from_input_mask([[1, 1, 0]]).numpy().tolist()
    [[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]
    """
    input_mask = argument_checks.mask_of("input_mask", input_mask, INPUT_MASK_KINDS)
    return make_segmented_att_mask(input_mask, name=name or "make_att_mask_from_input_mask")


def make_segmented_att_mask(segment_ids, name=None):
    """Makes an attention mask in which each token attends to the tokens of its own segment.

    Args:
        segment_ids: int [batch, seq_len].
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, seq_len]. 1 where attention is allowed.

    >>> from etcmodel import feature_utils
    >>> feature_utils.make_segmented_att_mask([[7, 7, 8]]).numpy().tolist()
    [[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]
    """
    with tf.name_scope(name or "make_segmented_att_mask"):
        segment_ids = argument_checks.whole_ids("segment_ids", segment_ids)
        tensor_utils.assert_rank(segment_ids, 2, "segment_ids")
        same = tf.equal(segment_ids[:, :, tf.newaxis], segment_ids[:, tf.newaxis, :])
        return tf.cast(same, tf.int32)


def make_att_mask_from_breakpoints(att_breakpoints, use_starting_breakpoints=False, name=None):
    """Makes an attention mask in which tokens attend to those between the same two breakpoints.

    Args:
        att_breakpoints: int [batch, seq_len]. 1 at the last token of each segment (at the first
            one, if `use_starting_breakpoints`), 0 elsewhere.
        use_starting_breakpoints: bool.
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, seq_len]. 1 where attention is allowed.

    >>> from etcmodel import feature_utils
    >>> feature_utils.make_att_mask_from_breakpoints([[0, 1, 1]]).numpy().tolist()
    [[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]
    """
    with tf.name_scope(name or "make_att_mask_from_breakpoints"):
        return make_segmented_att_mask(
            segment_ids_from_breakpoints(att_breakpoints, use_starting_breakpoints)
        )


def make_local_segmented_att_mask(segment_ids, local_radius, name=None):
    """Makes a local attention mask: each token attends to its own segment within the radius.

    Args:
        segment_ids: int [batch, seq_len].
        local_radius: int, at least 1. Tokens attended to on each side.
        name: name of the operation.
    Returns:
        int32 [batch, seq_len, 2 * local_radius + 1]. 1 where attention is allowed; 0 beyond the
        ends of the sequence.

    >>> from etcmodel import feature_utils
    >>> feature_utils.make_local_segmented_att_mask([[7, 7, 8]], local_radius=1).numpy().tolist()
    [[[0, 1, 1], [1, 1, 0], [0, 1, 0]]]
    """
    with tf.name_scope(name or "make_local_segmented_att_mask"):
        check_positive(local_radius=local_radius)
        segment_ids = argument_checks.whole_ids("segment_ids", segment_ids)
        tensor_utils.assert_rank(segment_ids, 2, "segment_ids")
        window = local_window(segment_ids, local_radius)
        inside = local_window(tf.ones_like(segment_ids), local_radius)
        return tf.cast(tf.equal(window, segment_ids[:, :, tf.newaxis]), tf.int32) * tf.cast(
            inside, tf.int32
        )


def make_local_att_mask_from_breakpoints(
    att_breakpoints, local_radius, use_starting_breakpoints=False, name=None
):
    """Like `make_local_segmented_att_mask`, from breakpoints (`make_att_mask_from_breakpoints`).

    >>> from etcmodel import feature_utils
    >>> feature_utils.make_local_att_mask_from_breakpoints([[0, 1, 1]], 1).numpy().tolist()
    [[[0, 1, 1], [1, 1, 0], [0, 1, 0]]]
    """
    with tf.name_scope(name or "make_local_att_mask_from_breakpoints"):
        return make_local_segmented_att_mask(
            segment_ids_from_breakpoints(att_breakpoints, use_starting_breakpoints), local_radius
        )


def segment_ids_from_breakpoints(
    att_breakpoints, use_starting_breakpoints=False, name="att_breakpoints"
):
    """Numbers the segments between breakpoints: int32 [batch, seq_len].

    The numbers rise to the right with starting breakpoints and to the left with ending ones.

    Raises:
        ValueError: with the name, if breakpoints have values other than 0 and 1; see `mask_of`.
    """
    kinds = ("inside of a segment", "at the end of one")
    breakpoints = tf.cast(argument_checks.mask_of(name, att_breakpoints, kinds), tf.int32)
    return tf.cumsum(breakpoints, axis=-1, reverse=not use_starting_breakpoints)


def local_window(values, local_radius):
    """Returns the values around each token; 0 beyond the ends.

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
