"""Sequences one after the other in flat tensors: neighbors, runs, parts."""

import tensorflow as tf


def firsts_of_runs(ids):
    """bool [num]. True where an element differs from the one before it, int [num]."""
    return tf.concat([tf.ones_like(ids[:1], tf.bool), tf.not_equal(ids[1:], ids[:-1])], 0)


def previous_true(flags):
    """int32 [num]. Index of the nearest True before each element; -1 for none."""
    found = tf.cast(tf.where(flags)[:, 0], tf.int32)
    rank = tf.cumsum(tf.cast(flags, tf.int32), exclusive=True)
    return tf.gather(tf.concat([[-1], found], 0), rank)


def next_true(flags):
    """int32 [num]. Index of the nearest True after each element; `num` for none."""
    found = tf.cast(tf.where(flags)[:, 0], tf.int32)
    rank = tf.cumsum(tf.cast(flags, tf.int32))
    return tf.gather(tf.concat([found, [tf.size(flags)]], 0), rank)


def parts(starts, counts):
    """The elements of ranges, one range after the other.

    Args:
        starts, counts: int32 [num_ranges].
    Returns:
        (elements, ranges): int32 [sum of counts]. Start + 0, 1, 2 …, and the number of the range.
    """
    ranges = tf.repeat(tf.range(tf.size(counts)), counts)
    before = tf.cumsum(counts, exclusive=True)
    return tf.range(tf.size(ranges)) + tf.gather(starts - before, ranges), ranges


class Places:
    """From bytes to characters of texts in UTF-8, one after the other.

    Args:
        code_points: int32 [num_chars]. Of all texts.
        starts: int32 [num_texts]. The first character of each.
    """

    def __init__(self, code_points, starts):
        widths = 1 + sum(tf.cast(code_points > most, tf.int32) for most in (0x7F, 0x7FF, 0xFFFF))
        first_bytes = tf.cumsum(tf.concat([[0], widths], 0))
        self._chars = tf.concat([tf.repeat(tf.range(tf.size(widths)), widths), tf.shape(widths)], 0)
        self._text_bytes = tf.gather(first_bytes, starts)

    def characters(self, texts, places):
        """The characters, int32, in which these bytes of these texts are; both int32, alike."""
        return tf.gather(self._chars, tf.gather(self._text_bytes, texts) + places)


# Ragged tensors of rows: made, counted, padded.


def of_rows(values, rows, num_rows):
    return tf.RaggedTensor.from_value_rowids(
        values, tf.cast(rows, tf.int64), nrows=tf.cast(num_rows, tf.int64), validate=False
    )


def filled(value, lengths):
    """Ragged [num_rows, (lengths)] of one value."""
    values = tf.fill([tf.reduce_sum(lengths)], value)
    return tf.RaggedTensor.from_row_lengths(values, tf.cast(lengths, tf.int64), validate=False)


def lengths(ragged):
    return tf.cast(ragged.row_lengths(), tf.int32)


def counts_of(ids, size):
    """int32 [size]: how often each id is there."""
    return tf.math.bincount(ids, minlength=size, maxlength=size)


def longest(ragged):
    return tf.maximum(tf.reduce_max(lengths(ragged)), 0)


def padded(ragged, default, length):
    """The dense tensor [num_rows, length, …] of a ragged one."""
    if not tf.is_tensor(length):
        return ragged.to_tensor(default, shape=[None, length])
    shape = tf.stack([-1, length, *ragged.shape[2:]])
    return ragged.to_tensor(default, shape=tf.cast(shape, tf.int64))


def gathered(values, places):
    """As `tf.gather`, with whatever is first, or 0, for places that are not there."""
    values = tf.concat([values, tf.zeros([1], values.dtype)], 0)
    return tf.gather(values, tf.clip_by_value(places, 0, tf.size(values) - 1))
