"""Sequences from a text, for training and for evaluation."""

import numpy as np
import tensorflow as tf

__all__ = ["check_length", "make_eval_dataset", "make_train_dataset"]


def make_train_dataset(text, length, request):
    """Endless batches of sequences with random starts in the text.

    The starts depend only on the seed and the place in the run, so that a resumed run, or one on
    another number of devices, gets the same sequences.

    Args:
        text: uint8 array, long enough: see `check_length`.
        length: int. Characters of a sequence, and one more that is only predicted.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset of {"characters": int32 [batch, length + 1]}.
    """
    context, worker, num_workers = request.input_context, 0, 1
    if context is not None:
        worker, num_workers = context.input_pipeline_id, context.num_input_pipelines
    with tf.device("CPU"):
        text = tf.constant(text)
    num_starts = len(text) - length

    def sequence(index):
        seed = tf.stack([tf.constant(request.seed, tf.int64), index])
        start = tf.random.stateless_uniform([], seed, maxval=num_starts, dtype=tf.int32)
        return {"characters": tf.cast(text[start : start + length + 1], tf.int32)}

    # Workers take turns with the sequences of a run.
    indices = tf.data.Dataset.counter(request.skip_examples + worker, num_workers)
    sequences = indices.map(sequence, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    batches = sequences.map(lambda x: _with_length(x, length + 1))
    batches = batches.batch(request.per_replica_batch_size, drop_remainder=True)
    return batches.prefetch(tf.data.AUTOTUNE)


def make_eval_dataset(text, length, step, batch_size):
    """Overlapping sequences, of which only the last predictions count (section 4.2.2).

    So each prediction that counts has a context of at least `length - step` characters; the first
    characters of the text do not count. The last sequence has fewer predictions that count.

    Args:
        text: uint8 array, long enough: see `check_length`.
        length: int. Characters of a sequence, and one more that is only predicted.
        step: int, at most `length`. Number of characters from one sequence to the next.
        batch_size: int.
    Returns:
        tf.data.Dataset of {"characters": int32 [batch, length + 1], "num_counted": int32 [batch]}.
    """
    last = len(text) - 1
    ends = np.append(np.arange(length, last, step), last)
    counted = np.diff(ends, prepend=length - step)
    with tf.device("CPU"):
        text = tf.constant(text)

    def sequence(end, num_counted):
        characters = tf.cast(text[end - length : end + 1], tf.int32)
        return _with_length({"characters": characters, "num_counted": num_counted}, length + 1)

    places = (ends.astype(np.int32), counted.astype(np.int32))
    sequences = tf.data.Dataset.from_tensor_slices(places).map(sequence, tf.data.AUTOTUNE)
    return sequences.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def _with_length(features, length):
    return {**features, "characters": tf.ensure_shape(features["characters"], [length])}


def check_length(text, length, what, flag):
    """Raises ValueError, naming `what` and the `flag`, if a text is too short for sequences."""
    if len(text) <= length:
        raise ValueError(
            f"{what} has {len(text)} bytes, too few for sequences of {length} characters and one "
            f"more. Give a longer text, or a lower {flag}."
        )
