"""Checks numeric constructor arguments of layers."""

import numpy as np

__all__ = ["check_at_least_1", "check_rates"]


def check_at_least_1(**sizes):
    """Raises ValueError, naming the size, if one is not an int or is below 1."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise ValueError(f"`{name}` must be an int. Received: {size!r}")
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {size}")


def check_rates(**rates):
    """Raises ValueError, naming the rate, if a dropout rate is not in [0, 1)."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {rate!r}")
