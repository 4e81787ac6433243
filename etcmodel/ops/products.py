"""Matrix products of attention: rows, keys and labels, block by block.

Rows (queries, or gradients of outputs) are [heads, batch, blocks, rows, size], keys (or values)
[heads, batch, blocks, keys, size], with one block where all rows share the keys, and pairs
[heads, batch, blocks, rows, keys].
"""

import tensorflow as tf

from etcmodel import tensor_utils

__all__ = ["by_label", "label_by_size", "pairs_by_keys", "pairs_by_rows", "rows_by_keys"]


def _flat(x, keys):
    """[…, rows, size] as matrices, one for each matrix of `keys` [heads, batch, blocks or 1, …]."""
    num_heads, batch, blocks, rows, size = tensor_utils.get_shape_list(x)
    if keys.shape[2] == 1:
        blocks, rows = 1, blocks * rows
    return tf.reshape(x, [num_heads * batch * blocks, rows, size])


def _matrices(keys):
    shape = tensor_utils.get_shape_list(keys)
    return tf.reshape(keys, [shape[0] * shape[1] * shape[2], *shape[3:]])


def _unflat(x, like):
    """Back to the blocks of `like`."""
    shape = tensor_utils.get_shape_list(like)[:4]
    return tf.reshape(x, [*shape, tensor_utils.get_shape_list(x)[-1]])


def rows_by_keys(rows, keys):
    """Products of every row with the keys of its block: [heads, batch, blocks, rows, keys]."""
    return _unflat(tf.matmul(_flat(rows, keys), _matrices(keys), transpose_b=True), rows)


def pairs_by_keys(pairs, keys):
    """Keys, weighted by what is known of every pair: [heads, batch, blocks, rows, size]."""
    return _unflat(tf.matmul(_flat(pairs, keys), _matrices(keys)), pairs)


def pairs_by_rows(pairs, rows, keys):
    """Rows, weighted likewise, for each key: [heads, batch, blocks or 1, keys, size]."""
    product = tf.matmul(_flat(pairs, keys), _flat(rows, keys), transpose_a=True)
    outer = tensor_utils.get_shape_list(keys)[:3]
    return tf.reshape(product, [*outer, *tensor_utils.get_shape_list(product)[1:]])


def by_label(rows, embs, transpose=False):
    """Rows [heads, batch, blocks, block_len, size] times a matrix of each head."""
    num_heads, *_, size = tensor_utils.get_shape_list(rows)
    product = tf.matmul(tf.reshape(rows, [num_heads, -1, size]), embs, transpose_b=transpose)
    return _unflat(product, rows)


def label_by_size(scores, rows):
    """Rows, weighted by what is known of each label: [heads, labels, size]."""
    flat = [
        tf.reshape(x, [x.shape[0], -1, tensor_utils.get_shape_list(x)[-1]]) for x in (scores, rows)
    ]
    return tf.matmul(*flat, transpose_a=True)
