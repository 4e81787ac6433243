"""Matrix products of attention: rows, keys and labels, block by block.

Rows (queries, or gradients of outputs) are [heads, batch, blocks, rows, size], keys (or values)
[heads, batch, blocks, keys, size], with one block if all rows share the keys, and pairs
[heads, batch, blocks, rows, keys].
"""

import tensorflow as tf

from etcmodel.ops.shapes import get_shape_list


def _merged(x, keys):
    """Merges blocks of [..., rows, size] into one matrix if they share their keys."""
    if keys.shape[2] != 1 or x.shape[2] == 1:
        return x
    num_heads, batch, blocks, rows, size = get_shape_list(x)
    return tf.reshape(x, [num_heads, batch, 1, blocks * rows, size])


def _split(x, like):
    """The inverse of `_merged`: splits into the blocks of `like`."""
    if x.shape[2] == like.shape[2]:
        return x
    return tf.reshape(x, [*get_shape_list(like)[:4], get_shape_list(x)[-1]])


def rows_by_keys(rows, keys):
    """Products of each row with each key of its block: [heads, batch, blocks, rows, keys]."""
    return _split(tf.matmul(_merged(rows, keys), keys, transpose_b=True), rows)


def pairs_by_keys(pairs, keys):
    """Sums of keys weighted by the values of pairs: [heads, batch, blocks, rows, size]."""
    return _split(tf.matmul(_merged(pairs, keys), keys), pairs)


def pairs_by_rows(pairs, rows, keys):
    """Sums of rows weighted by the values of pairs: [heads, batch, blocks or 1, keys, size]."""
    return tf.matmul(_merged(pairs, keys), _merged(rows, keys), transpose_a=True)


def by_label(rows, embs, transpose=False):
    """Rows [heads, batch, blocks, block_len, size] times one matrix for each head."""
    *outer, size = get_shape_list(rows)
    product = tf.matmul(tf.reshape(rows, [outer[0], -1, size]), embs, transpose_b=transpose)
    return tf.reshape(product, [*outer, get_shape_list(product)[-1]])


def label_by_size(scores, rows):
    """Sums of rows weighted by the values of labels: [heads, labels, size]."""
    flat = [tf.reshape(x, [x.shape[0], -1, get_shape_list(x)[-1]]) for x in (scores, rows)]
    return tf.matmul(*flat, transpose_a=True)
