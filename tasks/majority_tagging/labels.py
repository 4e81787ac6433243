"""The correct tags of a sequence (Gupta and Berant 2020, section 3.1)."""

import numpy as np

__all__ = ["constant_tags", "majority_tags"]


def majority_tags(tokens):
    """The more frequent member of each token's pair; the odd one in case of a tie.

    The pairs are (1, 2), (3, 4) …

    Args:
        tokens: int [length], at least 1.
    Returns:
        int [length].
    """
    odd = constant_tags(tokens)
    counts = np.bincount(tokens, minlength=np.max(odd, initial=0) + 2)
    return np.where(counts[odd] >= counts[odd + 1], odd, odd + 1)


def constant_tags(tokens):
    """The odd member of each token's pair, as a constant prediction: int [length]."""
    tokens = np.asarray(tokens, np.int64)
    return tokens - 1 + tokens % 2
