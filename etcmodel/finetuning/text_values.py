"""Values of string features, as decoding sees them."""

import numpy as np

__all__ = ["text_of"]


def text_of(value):
    """The str of a string feature, which is bytes in an evaluation and str at prediction."""
    value = np.ravel(value)[0]
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
