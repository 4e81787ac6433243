"""Texts that benchmarks read."""

import gzip

__all__ = ["read"]


def read(path, num_characters=-1):
    """The first characters of a UTF-8 file, packed by gzip if its name ends in .gz; -1 for all."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return file.read(num_characters)
