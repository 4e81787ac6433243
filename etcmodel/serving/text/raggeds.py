"""Ragged tensors of rows: made, counted, padded."""

import tensorflow as tf

__all__ = ["counts_of", "filled", "gathered", "lengths", "longest", "of_rows", "padded"]


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
