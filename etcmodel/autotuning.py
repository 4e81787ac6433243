"""Data sets whose iterators end at once."""

import tensorflow as tf

__all__ = ["without_autotuning"]


def without_autotuning(dataset):
    """The data set, with a number of threads for its parallel parts that stays as it is.

    TensorFlow's tuning (seen with 2.20) makes the end of some iterators wait until its thread wakes
    for the next round, which takes the longer the longer the iterator was in use: each evaluation
    might end seconds late.

    Args:
        dataset: tf.data.Dataset.
    Returns:
        tf.data.Dataset of the same elements.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
