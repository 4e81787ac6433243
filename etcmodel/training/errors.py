"""Errors as people read them: in one line."""

import re

__all__ = ["error_line"]

_ASSERTION = re.compile(r"assertion failed: \[(.*)\]")


def error_line(error):
    """What an exception says: str.

    Of an assertion that failed within a graph or a data set it is what the assertion says, without
    the lines that TensorFlow writes around it.
    """
    message = str(getattr(error, "message", error))
    if match := _ASSERTION.search(message):
        return match[1].replace("] [", " ")
    return message
