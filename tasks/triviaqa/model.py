"""The loss of TriviaQA; its models are `models.span_readers`."""

import tensorflow as tf

from etcmodel.models import processed_batches
from etcmodel.models.heads import losses

__all__ = ["loss"]


def loss(outputs, features):
    """The mean loss of a batch: of both ends, by a softmax over the tokens of each document.

    Args:
        outputs: dict of `start` and `end`, float32 [batch, long_len].
        features: dict of `labels/starts` and `labels/ends`, int 0/1 [batch, long_len], and those of
            `processed_batches.is_text`.
    Returns:
        dict of float32 scalars: "loss", "start_loss" and "end_loss".
    """
    allowed, parts = processed_batches.is_text(features), {}
    for end in ("start", "end"):
        is_right = features[f"labels/{end}s"] > 0
        costs = losses.any_position_crossentropy(outputs[end], is_right, allowed)
        parts[f"{end}_loss"] = tf.reduce_mean(costs)
    return {"loss": tf.add_n(list(parts.values())) / len(parts), **parts}
