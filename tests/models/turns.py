"""In which order a test tries systems: which of them are quick or slow differs by test."""

import zlib

import pytest


def each(names, first=None):
    """A decorator that gives a test each of the names, from `first` or any one on."""

    def of_test(test):
        start = names.index(first) if first else zlib.crc32(test.__name__.encode()) % len(names)
        return pytest.mark.parametrize("name", names[start:] + names[:start])(test)

    return of_test
