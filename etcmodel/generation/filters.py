"""Sampling filters: logits of tokens that must not be drawn become -infinity."""

import tensorflow as tf

__all__ = ["filtered"]


def filtered(logits, temperature=1.0, top_k=0, top_p=1.0):
    """Applies temperature, then top-k, then top-p filtering to logits.

    Args:
        logits: float32 [rows, vocab_size].
        temperature: float. The logits are divided by it.
        top_k: int. Keeps the k most probable tokens; 0 for all. Ties with the last of them are
            kept, too.
        top_p: float. Keeps the most probable tokens up to the one with which they reach this total
            probability (Holtzman et al. 2020); 1 for all.
    Returns:
        float32 [rows, vocab_size].
    """
    logits /= temperature
    if top_k:
        kth = tf.nn.top_k(logits, tf.minimum(top_k, tf.shape(logits)[1]))[0][:, -1:]
        logits = tf.where(logits < kth, -float("inf"), logits)
    if top_p < 1:
        order = tf.argsort(logits, direction="DESCENDING", stable=True)
        ordered = tf.nn.softmax(tf.gather(logits, order, batch_dims=1))
        before = tf.cumsum(ordered, axis=1, exclusive=True)
        places = tf.argsort(order, stable=True)
        is_left_out = tf.gather(before >= top_p, places, batch_dims=1)
        logits = tf.where(is_left_out, -float("inf"), logits)
    return logits
