"""Labels of conditional generation: the decoder's ids, and the loss."""

import tensorflow as tf

from etcmodel.layers import sublayers
from etcmodel.ops import argument_checks

__all__ = ["IGNORED_LABEL", "decoder_ids", "loss"]

IGNORED_LABEL = -100


def decoder_ids(labels, start_token_id, pad_token_id, name="labels"):
    """Shifts labels by one position to the decoder ids from which they are predicted.

    Args:
        labels: int [batch, length]; -100 is ignored.
        start_token_id: int. The first id of each row.
        pad_token_id: int. Replaces -100.
        name: str. Name of the labels in errors.
    Returns:
        int [batch, length].
    Raises:
        ValueError: if there is no start token, or the labels have another rank.
    """
    if start_token_id is None:
        raise ValueError(
            "The config has no `decoder_start_token_id`: give `decoder_input_ids`, or load the "
            "model with `decoder_start_token_id=0`, say."
        )
    argument_checks.check_shapes({name: labels}, {name: "batch length"})
    labels = sublayers.as_ids(labels)
    first = tf.fill([tf.shape(labels)[0], 1], tf.cast(start_token_id, labels.dtype))
    shifted = tf.concat([first, labels[:, :-1]], axis=1)
    return tf.where(tf.equal(shifted, IGNORED_LABEL), tf.cast(pad_token_id, labels.dtype), shifted)


def loss(logits, labels, label_smoothing=0.0):
    """Mean cross entropy over all labels of a batch except -100; NaN if there are none.

    Args:
        logits: float [batch, length, vocab_size].
        labels: int [batch, length].
        label_smoothing: float. Share of each label that is spread evenly over the vocabulary
            (Szegedy et al. 2016, section 7).
    Returns:
        float32 scalar.
    Raises:
        ValueError: if the labels have another shape or exceed the vocabulary; in a graph, values
            known only at run time raise `tf.errors.InvalidArgumentError`.
    """
    labels = _checked(logits, labels)
    is_label = tf.not_equal(labels, IGNORED_LABEL)
    targets = tf.where(is_label, labels, tf.zeros([], labels.dtype))
    logits = tf.cast(logits, tf.float32)
    by_token = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
    if label_smoothing:
        evenly = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=-1)
        by_token = (1 - label_smoothing) * by_token + label_smoothing * evenly
    weights = tf.cast(is_label, tf.float32)
    return tf.reduce_sum(by_token * weights) / tf.reduce_sum(weights)


@tf.autograph.experimental.do_not_convert
def _checked(logits, labels):
    """Checks labels against the logits and returns them as a tensor."""
    asserts, axes = [], {"logits": "batch length vocab_size", "labels": "batch length"}
    argument_checks.check_shapes({"logits": logits, "labels": labels}, axes, asserts=asserts)
    labels, vocab_size = sublayers.as_ids(labels), logits.shape[-1]
    ids = tf.where(tf.equal(labels, IGNORED_LABEL), tf.zeros([], labels.dtype), labels)
    words = f"{vocab_size}, the size of the vocabulary, or {IGNORED_LABEL} for none"
    argument_checks.check_range("labels", ids, 0, vocab_size, words, asserts=asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(labels)
