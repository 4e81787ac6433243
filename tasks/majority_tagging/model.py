"""The model, GMAT with a tag for each token (Gupta and Berant 2020, section 3.1), and its loss."""

import tensorflow as tf

from etcmodel.autograph import without_autograph
from etcmodel.models import padding
from etcmodel.models.gmat import GmatForTokenClassification
from etcmodel.models.heads import losses

from .features import PADDING_TAG

__all__ = ["MajorityTagger", "loss"]


class MajorityTagger(GmatForTokenClassification):
    """A `GmatForTokenClassification` as a task's model.

    Args:
        encoder: `GmatConfig`.
        skip_padding: bool. Do not encode positions that are padding in the whole batch
            (`models.padding`).
        **kwargs: of `GmatForTokenClassification`.
    Call args:
        features: dict of int `input_ids` and `attention_mask` [batch, length].
        training: bool.
    Returns:
        float32 [batch, length, num_labels]. Logits.
    """

    def __init__(self, encoder, *, skip_padding=False, **kwargs):
        super().__init__(encoder, **{"name": "majority_tagging", **kwargs})
        self.skip_padding = skip_padding

    @without_autograph
    def call(self, features, training=None):
        if not self.skip_padding:
            return super().call(features, training=training)
        logits = super().call(padding.cut_text(features), training=training)
        return padding.restored(logits, features["attention_mask"])


def loss(outputs, features):
    """Loss and accuracy: means over all tokens of the batch except padding.

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
