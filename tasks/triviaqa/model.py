"""The loss of TriviaQA; its models are `models.span_readers`."""

import tensorflow as tf

from etcmodel.layers.heads import MASKED_LOGIT
from etcmodel.models import processed_batches

__all__ = ["loss"]


def loss(outputs, features):
    """How improbable it is that an answer starts, and one ends, where one does; the mean of both.

    The probability of all starts together is that of any of them ("or"), so that the model need not
    find the many places where the answer's words mean something else. It is a softmax over the
    document's tokens. Source: Clark and Gardner 2017 (arXiv:1710.10723), section 3, "summed
    objective", with one document at a time, as in Longformer's paper.

    Args:
        outputs: dict of `start` and `end`, float32 [batch, long_len].
        features: dict of `labels/starts` and `labels/ends`, int 0/1 [batch, long_len], of which a
            row without any adds nothing; and those of `processed_batches.is_text`.
    Returns:
        dict of float32 scalars: "loss", "start_loss" and "end_loss".
    """
    is_text = processed_batches.is_text(features)
    parts = {
        f"{end}_loss": _or_loss(outputs[end], features[f"labels/{end}s"] > 0, is_text)
        for end in ("start", "end")
    }
    return {"loss": tf.add_n(list(parts.values())) / len(parts), **parts}


def _or_loss(logits, is_answer, is_text):
    """Mean over the batch of -log of the answers' probability: float32 scalar."""
    logits = tf.where(is_text, logits, MASKED_LOGIT)
    of_answers = tf.reduce_logsumexp(tf.where(is_answer, logits, MASKED_LOGIT), axis=-1)
    costs = tf.reduce_logsumexp(logits, axis=-1) - of_answers
    return tf.reduce_mean(tf.where(tf.reduce_any(is_answer & is_text, axis=-1), costs, 0.0))
