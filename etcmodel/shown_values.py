"""Formats values for messages, cut to a readable length.

TensorFlow is not needed.
"""

import reprlib

_MAX_CHARS = 200
_MAX_NAMED = 5
_MAX_LINE = 8_000
_MAX_BITS = 1_000


def shown(value, max_chars=_MAX_CHARS):
    """Returns a value's `repr` in one line, without the middle of what is long: str.

    Args:
        value: anything; only a part of nested or long values is used.
        max_chars: int.
    """
    return shortened(_REPR.repr(value).replace("\n", " "), max_chars)


def shortened(text, max_chars=_MAX_LINE):
    """Returns a text without its middle, if it is longer than `max_chars`: str.

    The beginning names the file or the flag, and the end says what is wrong.
    """
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]} … ({len(text)} characters) … {text[-half:]}"


def as_flag(value):
    """Returns a value as on a command line, without the middle of what is long: str."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return shortened(value, 2 * _MAX_CHARS) if isinstance(value, str) else shown(value)


def listed(items, separator=", "):
    """Returns the first items, and how many more there are, for a one-line error: str."""
    more = len(items) - _MAX_NAMED
    return separator.join(items[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def named(names):
    """Returns the first of the given names, each without the middle of what is long: str."""
    return listed([shortened(str(name), _MAX_CHARS) for name in names])


class _Repr(reprlib.Repr):
    def __init__(self):
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 20
        self.maxstring = self.maxother = _MAX_CHARS
        self.maxlevel = 4

    def repr_int(self, value, level):
        if value.bit_length() > _MAX_BITS:  # Of some more digits Python refuses to write any.
            return f"an integer of {value.bit_length()} bits"
        return repr(value)


_REPR = _Repr()
