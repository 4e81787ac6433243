"""Which tokens are drawn from: the logits of the others become -infinity."""

import tensorflow as tf

__all__ = ["filtered"]


def filtered(logits, temperature=1.0, top_k=0, top_p=1.0):
    """Logits by temperature, of the k most probable tokens, of which those with probability p.

    Args:
        logits: float32 [rows, vocab_size].
        temperature: float. The logits are divided by it.
        top_k: int. 0 for all. Tokens as probable as the last of them stay, too.
        top_p: float. The most probable tokens stay up to that with which they have this
            probability together (Holtzman et al. 2020); 1 for all.
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
