"""Cuts the longest of several documents first: `text.truncation` in a graph."""

import tensorflow as tf

__all__ = ["fill_parts", "shares"]


def shares(sizes, room):
    """Sizes cut to a common height, so that their sum is at most `room`; the first ones get more.

    Args:
        sizes: int [batch, num_sizes].
        room: int [batch].
    Returns:
        int32 [batch, num_sizes].
    """
    sizes, room = tf.cast(sizes, tf.int64), tf.cast(room, tf.int64)[:, tf.newaxis]
    ascending = tf.sort(sizes, axis=1)
    number = tf.range(tf.shape(sizes)[1], dtype=tf.int64)
    num_left = tf.cast(tf.shape(sizes)[1], tf.int64) - number
    # What there is if all are cut to the height of each of them.
    sums = tf.cumsum(ascending, axis=1, exclusive=True) + ascending * num_left
    fits = sums <= room
    num_whole = tf.reduce_sum(tf.cast(fits, tf.int64), axis=1, keepdims=True)
    height = tf.reduce_max(tf.where(fits, ascending, 0), axis=1, keepdims=True)
    used = tf.reduce_sum(tf.minimum(sizes, height), axis=1, keepdims=True)
    num_cut = tf.cast(tf.shape(sizes)[1], tf.int64) - num_whole
    height += tf.where(num_cut > 0, (room - used) // tf.maximum(num_cut, 1), 0)
    cut = tf.minimum(sizes, height)
    left = room - tf.reduce_sum(cut, axis=1, keepdims=True)
    is_cut = tf.cast(sizes > cut, tf.int64)
    gets_more = is_cut * tf.cast(tf.cumsum(is_cut, axis=1) <= left, tf.int64)
    return tf.cast(cut + gets_more, tf.int32)


def fill_parts(outline, room):
    """Takes of each document, or sentence of none, what its share has room for, from its start.

    Args:
        outline: `windows.Outline`.
        room: `windows.Room`.
    Returns:
        (lasts, is_in): int32 and bool [batch, num_blocks]. The end of what is in of each block, and
        whether it is in, maybe without pieces.
    """
    places, is_block = outline.places, outline.is_block()
    shape = tf.shape(outline.counts)
    owners = tf.where(outline.parents >= 0, outline.parents, places)
    before = tf.cumsum(outline.counts, axis=1, exclusive=True)
    taken = before + outline.counts - tf.gather(before, owners, batch_dims=1)
    num_global = places - owners + 1
    flat_owners = tf.reshape(owners + tf.range(shape[0])[:, tf.newaxis] * shape[1], [-1])

    def shared(sizes, limit):
        """The share of each block's document."""
        sums = tf.math.unsorted_segment_sum(tf.reshape(sizes, [-1]), flat_owners, tf.size(sizes))
        return tf.gather(shares(tf.reshape(sums, shape), limit), owners, batch_dims=1)

    pieces = shared(outline.counts, room.pieces)
    fits = is_block & (num_global <= shared(tf.cast(is_block, tf.int32), room.blocks))
    left = pieces - (taken - outline.counts)
    is_whole = fits & (taken <= pieces)
    is_cut = fits & ~is_whole & (left > 0) & (not room.whole_blocks)
    lasts = tf.where(is_whole, outline.counts, tf.where(is_cut, left, 0))
    return lasts, is_whole | is_cut
