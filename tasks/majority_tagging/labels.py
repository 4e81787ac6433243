"""What each token of a sequence is to be tagged with (Gupta and Berant 2020, section 3.1)."""

import numpy as np

__all__ = ["constant_tags", "majority_tags"]


def majority_tags(tokens):
    """The more frequent member of each token's pair; the odd one if both are as frequent.

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
    """The odd member of each token's pair, what is right if it is the majority: int [length]."""
    tokens = np.asarray(tokens, np.int64)
    return tokens - 1 + tokens % 2
