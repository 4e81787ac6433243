"""The loss of a classification; its models are `models.sequence_classifiers`."""

import numpy as np
import tensorflow as tf

from etcmodel import record_files, training
from etcmodel.autotuning import without_autotuning

from .config import MULTI_LABEL, REGRESSION

__all__ = ["balanced_weights", "loss"]


def loss(outputs, features, problem_type, class_weights=None):
    """The mean loss of a batch: cross entropy, or squared error for a regression.

    Args:
        outputs: dict with `logits`, float32 [batch, num_outputs].
        features: dict with `labels`, int [batch]; with several labels 0/1 [batch, num_labels]; in a
            regression float [batch].
        problem_type: str, one of `config.PROBLEM_TYPES`.
        class_weights: sequence of float, or None for 1. The weight of the examples of each label;
            with several labels, the weight of a label where it is given.
    Returns:
        dict with `loss`, float32 [].
    """
    logits, labels = outputs["logits"], features["labels"]
    if problem_type == REGRESSION:
        losses = tf.math.squared_difference(logits[:, 0], labels)
    elif problem_type == MULTI_LABEL:
        weights = tf.constant([1.0] if class_weights is None else class_weights, tf.float32)
        targets = tf.cast(labels, tf.float32)
        losses = tf.nn.weighted_cross_entropy_with_logits(targets, logits, weights)
    else:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        if class_weights is not None:
            losses *= tf.gather(tf.constant(class_weights, tf.float32), labels)
    return {"loss": tf.reduce_mean(losses)}


def balanced_weights(file_pattern, labels, problem_type):
    """Weights that give rare labels as much influence as frequent ones, from training records.

    With one label per text, the records of every label have the same total weight, and all records
    together weigh as much as their number. With several labels, a label has the same total weight
    where it is given as where it is not.

    Args:
        file_pattern: str. TFRecords.
        labels: sequence of str.
        problem_type: str.
    Returns:
        list of float, one per label.
    Raises:
        ValueError: naming a label that no record has.
    """
    is_multi_label = problem_type == MULTI_LABEL
    shape = [len(labels)] if is_multi_label else []
    spec = {"labels": tf.io.FixedLenFeature(shape, tf.int64)}
    counts, num_records = np.zeros(len(labels)), 0
    records = record_files.records(training.matching_files(file_pattern))
    for batch in without_autotuning(records.batch(1024)):
        found = tf.io.parse_example(batch, spec)["labels"].numpy()
        num_records += len(found)
        counts += (found if is_multi_label else np.eye(len(labels))[found]).sum(axis=0)
    for label, count in zip(labels, counts, strict=True):
        if not count:
            raise ValueError(
                f"--class_weights=balanced: no training record has the label {label!r}. Give the "
                "weights as numbers."
            )
    if is_multi_label:
        weights = (num_records - counts) / counts
        return np.where(counts < num_records, weights, 1.0).tolist()  # Never absent: weight 1.
    return (num_records / (len(labels) * counts)).tolist()
