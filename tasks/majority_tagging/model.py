"""The model, GMAT with a tag for each token (Gupta and Berant 2020, section 3.1), and its loss."""

import tensorflow as tf

from etcmodel.models.gmat import GmatForTokenClassification
from etcmodel.models.heads import losses

from .features import PADDING_TAG

__all__ = ["build_model", "loss"]


def build_model(encoder_config, num_tags):
    """From `input_ids` and `attention_mask`, int [batch, length], to tags' logits.

    Args:
        encoder_config: `GmatConfig`.
        num_tags: int.
    Returns:
        `GmatForTokenClassification`: float32 [batch, length, num_tags].
    """
    return GmatForTokenClassification(encoder_config, num_labels=num_tags, name="majority_tagging")


def loss(outputs, features):
    """Means over all tokens of the batch but padding.

    Args:
        outputs: dict of float32 `logits` [batch, length, num_tags].
        features: dict with int32 `labels` [batch, length], -1 for padding.
    Returns:
        dict of float32 scalars: "loss", the cross entropy, and "train_accuracy" in [0, 1].
    """
    logits, labels = outputs["logits"], features["labels"]
    is_right = tf.cast(tf.equal(tf.argmax(logits, -1, labels.dtype), labels), tf.float32)
    is_token = tf.cast(tf.not_equal(labels, PADDING_TAG), tf.float32)
    num_right = tf.reduce_sum(is_right * is_token)
    return {
        "loss": tf.reduce_mean(losses.MeanCrossentropy(ignored=PADDING_TAG).call(labels, logits)),
        "train_accuracy": tf.math.divide_no_nan(num_right, tf.reduce_sum(is_token)),
    }
