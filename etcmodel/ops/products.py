"""Matrix products of attention: rows, keys and labels, block by block.

Rows (queries, or gradients of outputs) are [heads, batch, blocks, rows, size], keys (or values)
[heads, batch, blocks, keys, size], with one block if all rows share the keys, and pairs
[heads, batch, blocks, rows, keys].
"""

import tensorflow as tf

from etcmodel.ops.shapes import get_shape_list

__all__ = ["by_label", "label_by_size", "pairs_by_keys", "pairs_by_rows", "rows_by_keys"]


def _flat(x, keys):
    """Merges blocks of [..., rows, size] into one matrix if they share their keys."""
    num_heads, batch, blocks, rows, size = get_shape_list(x)
    if keys.shape[2] == 1:
        blocks, rows = 1, blocks * rows
    return tf.reshape(x, [num_heads * batch * blocks, rows, size])


def _matrices(keys):
    shape = get_shape_list(keys)
    return tf.reshape(keys, [shape[0] * shape[1] * shape[2], *shape[3:]])


def _unflat(x, like):
    """The inverse of `_flat`: splits into the blocks of `like`."""
    shape = get_shape_list(like)[:4]
    return tf.reshape(x, [*shape, get_shape_list(x)[-1]])


def rows_by_keys(rows, keys):
    """Products of each row with each key of its block: [heads, batch, blocks, rows, keys]."""
    return _unflat(tf.matmul(_flat(rows, keys), _matrices(keys), transpose_b=True), rows)


def pairs_by_keys(pairs, keys):
    """Sums of keys weighted by the values of pairs: [heads, batch, blocks, rows, size]."""
    return _unflat(tf.matmul(_flat(pairs, keys), _matrices(keys)), pairs)


def pairs_by_rows(pairs, rows, keys):
    """Sums of rows weighted by the values of pairs: [heads, batch, blocks or 1, keys, size]."""
    product = tf.matmul(_flat(pairs, keys), _flat(rows, keys), transpose_a=True)
    outer = get_shape_list(keys)[:3]
    return tf.reshape(product, [*outer, *get_shape_list(product)[1:]])


def by_label(rows, embs, transpose=False):
    """Rows [heads, batch, blocks, block_len, size] times one matrix for each head."""
    num_heads, *_, size = get_shape_list(rows)
    product = tf.matmul(tf.reshape(rows, [num_heads, -1, size]), embs, transpose_b=transpose)
    return _unflat(product, rows)


def label_by_size(scores, rows):
    """Sums of rows weighted by the values of labels: [heads, labels, size]."""
    flat = [tf.reshape(x, [x.shape[0], -1, get_shape_list(x)[-1]]) for x in (scores, rows)]
    return tf.matmul(*flat, transpose_a=True)
