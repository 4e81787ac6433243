"""Bits per character of overlapping sequences."""

import math

import numpy as np

__all__ = ["metrics"]


def metrics(predictions):
    """What the predictions that count tell.

    Args:
        predictions: iterator of dict of NumPy arrays, one a sequence: `losses` [length] in nats,
            and `num_counted`, how many of the last of them count.
    Returns:
        dict of float: "bits_per_character", and "characters", how many were predicted.
    """
    total, count = 0.0, 0
    for sequence in predictions:
        number = int(sequence["num_counted"])
        total += sequence["losses"][-number:].sum(dtype=np.float64)
        count += number
    return {"bits_per_character": total / count / math.log(2), "characters": float(count)}
