"""The loss of a tagger; its models are `models.token_classifiers`."""

import tensorflow as tf

from .features import NOTHING

__all__ = ["loss"]


def loss(outputs, features):
    """The mean cross entropy over the words of a batch.

    Args:
        outputs: dict with `logits`, float32 [batch, long_len, num_labels].
        features: dict with `labels`, int [batch, long_len]; -1 is ignored.
    Returns:
        dict with `loss`, float32 [], 0 without words.
    """
    labels = features["labels"]
    is_word = tf.not_equal(labels, NOTHING)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.where(is_word, labels, 0), outputs["logits"]
    )
    weights = tf.cast(is_word, losses.dtype)
    return {"loss": tf.math.divide_no_nan(tf.reduce_sum(losses * weights), tf.reduce_sum(weights))}
