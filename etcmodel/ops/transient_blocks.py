"""Blocks of tokens with one side input each, as in LongT5 (Guo et al. 2022, section 3.1).

Tokens are counted by position in the input, padding included. A block exists if its last position
has a token; tokens after the last block belong to it. The released models were trained this way:
padding in front of a text, or in the middle of it, moves the borders.
"""

import tensorflow as tf

from etcmodel.ops.shapes import get_shape_list


def block_numbers(mask, size):
    """Returns the number of each token's block.

    Args:
        mask: bool or 0/1 int [batch, length]. 1 for tokens, 0 for padding.
        size: int. Tokens per block.
    Returns:
        int32 [batch, length]; -1 for padding, and for a whole row without blocks.
    """
    mask = tf.cast(mask, tf.int32)
    places = tf.range(get_shape_list(mask)[1])
    is_last = tf.cast(tf.equal(places % size, size - 1), tf.int32)
    last_block = tf.reduce_sum(mask * is_last, axis=1, keepdims=True) - 1
    return tf.where(mask > 0, tf.minimum(places // size, last_block), -1)


def is_used(numbers, num_blocks):
    """Marks the existing blocks: bool [batch, num_blocks], from `block_numbers`."""
    last = tf.reduce_max(numbers, axis=1, keepdims=True)
    return tf.range(num_blocks) <= last


def block_sums(x, numbers, num_blocks):
    """Sums the tokens of each block.

    Args:
        x: float [batch, length, size].
        numbers: int32 [batch, length], from `block_numbers`.
        num_blocks: int or scalar tensor. Number of blocks that fit into the length.
    Returns:
        float [batch, num_blocks, size]; 0 for absent blocks.
    """
    batch, length, size = get_shape_list(x)
    first = tf.range(batch)[:, tf.newaxis] * num_blocks
    segments = tf.where(numbers < 0, -1, numbers + first)  # Those below 0 are left out.
    flat = tf.cast(tf.reshape(x, [batch * length, size]), tf.float32)
    sums = tf.math.unsorted_segment_sum(flat, tf.reshape(segments, [-1]), batch * num_blocks)
    return tf.cast(tf.reshape(sums, [batch, num_blocks, size]), x.dtype)
