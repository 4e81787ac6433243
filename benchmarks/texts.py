"""Texts that benchmarks read."""

import gzip

__all__ = ["read"]


def read(path):
    """The content of a UTF-8 file, packed by gzip if its name ends in .gz: str."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return file.read()
