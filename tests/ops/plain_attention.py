"""Attention over all pairs at once, by ordinary operations that TensorFlow can differentiate."""

import numpy as np
import tensorflow as tf

from tests.ops import numpy_attention


def attend(queries, keys, values, pairs, tables=None, kept=None, rate=0.0):
    """Every query over every key: float64 [batch, rows, heads, value_size].

    Args:
        queries, keys, values: float [batch, tokens, heads, size].
        pairs: `numpy_attention.Pairs` of the queries and keys.
        tables: label embeddings and biases, where the pairs have labels.
        kept: bool [batch, rows, heads, keys] or None. Probabilities that dropout keeps.
        rate: float. Of that dropout.
    """
    queries, keys, values = (tf.cast(x, tf.float64) for x in (queries, keys, values))
    logits = tf.einsum("bqhs,bkhs->bqkh", queries, keys)
    if pairs.labels is not None and tables is not None:
        embs, biases = (tf.cast(table, tf.float64) for table in tables)
        by_label = tf.einsum("bqhs,lhs->bqlh", queries, embs) + biases
        logits += tf.gather(by_label, pairs.labels, batch_dims=2)
    logits /= np.sqrt(queries.shape[-1])
    logits += tf.where(pairs.is_allowed, 0.0, tf.constant(-10000.0, tf.float64))[..., tf.newaxis]
    logits = tf.where(pairs.exists[..., np.newaxis], logits, tf.constant(-np.inf, tf.float64))
    probs = tf.nn.softmax(logits, axis=2)
    if kept is not None:
        probs *= tf.transpose(tf.cast(kept, tf.float64), [0, 1, 3, 2]) / (1 - rate)
    return tf.einsum("bqkh,bkhs->bqhs", probs, values)


def by_structure(heads, tables, pairs, kept=None, rate=0.0):
    """Long and global output, of heads by name (`long_q`, `global_k`, …)."""
    joined = [tf.concat([heads[f"global_{what}"], heads[f"long_{what}"]], 1) for what in "qkv"]
    output = attend(*joined, pairs, tables, kept, rate)
    global_len = heads["global_q"].shape[1]
    return output[:, global_len:], output[:, :global_len]


def pairs_of(structure, radius):
    """`numpy_attention.Pairs` of a structure of tensors."""
    arrays = tf.nest.map_structure(lambda x: x.numpy() if tf.is_tensor(x) else x, structure)
    return numpy_attention.pairs_of(arrays, radius)
