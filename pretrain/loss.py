"""The two losses of pre-training, over the whole batch of all devices (paper, section 3.5)."""

import tensorflow as tf

__all__ = ["contrastive_loss", "pretraining_loss"]

_NEVER = -1e9  # Logit of padding sentences.


def pretraining_loss(outputs, features, *, mlm_weight, cpc_weight, gather_negatives=True):
    """The weighted sum of both losses, and the accuracy of each task.

    All are means over the tokens and sentences of the global batch, not of one device, so that
    their mean over the devices does not depend on the number of devices.

    Args:
        outputs: of `PretrainModel`.
        features: dict of int32 `mlm_labels`, `mlm_mask` [batch, M]; with CPC `cpc_mask` [batch, C]
            and, while its weight rises, float32 `cpc_weight_share` [batch], all equal.
        mlm_weight, cpc_weight: float.
        gather_negatives: bool. Contrast sentences with those of all devices, not only of this one;
            means are then over all devices, too. With several devices, this works neither within
            gradient accumulation nor within XLA.
    Returns:
        dict of float32 scalars: "loss", "mlm_loss", "mlm_accuracy"; with CPC "cpc_loss",
        "cpc_accuracy" and "cpc_chance", the accuracy of guessing.
    """
    together = _replicas() if gather_negatives else None
    is_right = outputs["mlm_token_ids"] == features["mlm_labels"]
    parts = {
        "mlm_loss": _mean(outputs["mlm_loss"], features["mlm_mask"], together),
        "mlm_accuracy": _mean(tf.cast(is_right, tf.float32), features["mlm_mask"], together),
    }
    total = mlm_weight * parts["mlm_loss"]
    if "cpc_targets" in outputs:
        mask = tf.reshape(features["cpc_mask"], [-1])
        size = outputs["cpc_targets"].shape[-1]
        predictions = tf.reshape(outputs["cpc_predictions"], [-1, size])
        targets = tf.reshape(outputs["cpc_targets"], [-1, size])
        losses, is_right, chance = contrastive_loss(predictions, targets, mask, together)
        parts["cpc_loss"] = _mean(losses, mask, together)
        parts["cpc_accuracy"] = _mean(is_right, mask, together)
        parts["cpc_chance"] = chance
        if "cpc_weight_share" in features:
            cpc_weight *= tf.reduce_mean(features["cpc_weight_share"])
        total += cpc_weight * parts["cpc_loss"]
    return {"loss": total, **parts}


def contrastive_loss(predictions, targets, mask, replicas=None):
    """Noise contrastive estimation: which of the batch's sentences is the masked one?

    Source: Oord et al. 2018 (arXiv:1807.03748), section 2.3.

    Args:
        predictions: float32 [n, size].
        targets: float32 [n, size]. The i-th is the true target of the i-th prediction, the others
            are its negatives.
        mask: int [n]. 1 for real sentences; others are not used as negatives.
        replicas: `tf.distribute.ReplicaContext` whose devices' targets are also negatives, or None.
    Returns:
        (float32 [n] cross entropies; float32 [n], 1 where the true target has the highest logit;
        float32 scalar, the accuracy of guessing).
    """
    count, first = tf.shape(predictions)[0], 0
    if replicas is not None:
        # All devices have equally many rows; the masks mark the real ones.
        targets = replicas.all_gather(targets, axis=0)
        mask = replicas.all_gather(mask, axis=0)
        first = tf.cast(replicas.replica_id_in_sync_group, tf.int32) * count
    logits = tf.matmul(predictions, targets, transpose_b=True)  # [n, all targets]
    logits = tf.where(mask > 0, logits, _NEVER)
    labels = first + tf.range(count)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    is_right = tf.cast(tf.argmax(logits, -1, tf.int32) == labels, tf.float32)
    chance = 1.0 / tf.maximum(tf.cast(tf.reduce_sum(mask), tf.float32), 1.0)
    return losses, is_right, chance


def _replicas():
    """The replica context if there are several devices, else None."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context


def _mean(values, mask, replicas):
    """This device's part of the mean over real values, times the number of devices."""
    mask = tf.cast(mask, tf.float32)
    count = tf.reduce_sum(mask)
    if replicas is not None:
        count = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, count)
    # Without real values, the result is 0 times something finite.
    return tf.reduce_sum(values * mask) / tf.maximum(count, 1e-6)
