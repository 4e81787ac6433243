"""Bits per character of overlapping sequences."""

import math

import numpy as np

__all__ = ["metrics"]


def metrics(predictions):
    """The metrics of the predictions that count.

    Args:
        predictions: iterator of dict of NumPy arrays, one per sequence: `losses` [length] in nats,
            and `num_counted`, the number of last losses that count.
    Returns:
        dict of float: "bits_per_character", and "characters", the number of predicted characters.
    """
    total, count = 0.0, 0
    for sequence in predictions:
        number = int(sequence["num_counted"])
        total += sequence["losses"][-number:].sum(dtype=np.float64)
        count += number
    return {"bits_per_character": total / count / math.log(2), "characters": float(count)}
