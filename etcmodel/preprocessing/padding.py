"""Lists with parts that come again in most records, such as padding, which are serialized once."""

import typing

__all__ = ["Joined", "Repeated", "padded"]

_CHANGES = (
    *("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"),
    *("__delitem__", "__iadd__", "__imul__", "__setitem__"),
)


class Repeated(typing.NamedTuple):
    """A number again and again: a part of a `Joined`.

    Attributes:
        number: int or float.
        count: int.

    >>> from etcmodel import preprocessing
    >>> preprocessing.Joined(preprocessing.Repeated(number=7, count=3))
    [7, 7, 7]
    """

    number: int | float
    count: int


class Joined(list):
    """A list of int, or of float, made of parts, as a feature of a record.

    It is a list like any other but for what would change it, a TypeError: records are written from
    its parts.

    Attributes:
        parts: tuple. In order, each a tuple, or a range or a `Repeated`, of which long ones cost
            little to write.

    Args:
        *parts: likewise; a list is copied.

    >>> from etcmodel import preprocessing
    >>> preprocessing.Joined([2, 7], range(3), preprocessing.Repeated(0, 2))
    [2, 7, 0, 1, 2, 0, 0]
    """

    __slots__ = ("parts",)

    def __init__(self, *parts):
        super().__init__()
        counted = {}  # A range's numbers are made once, however often it is a part.
        for part in parts:
            if isinstance(part, Repeated):
                part = [part.number] * part.count
            elif isinstance(part, range):
                part = counted.get(part) or counted.setdefault(part, list(part))
            super().extend(part)
        # What becomes of the caller's lists is not to become of these.
        self.parts = tuple(tuple(part) if isinstance(part, list) else part for part in parts)

    def __reduce__(self):
        return Joined, self.parts


def _refusing(name):
    def refuse(self, *unused_args, **unused_kwargs):
        raise TypeError(f"A padded list cannot be changed (`{name}`): change a copy, list(values).")

    return refuse


for _name in _CHANGES:
    setattr(Joined, _name, _refusing(_name))


def padded(values, length, padding=0):
    """A list, and after it as many of a number as make it of some length.

    Args:
        values: list of int or float, or a `Repeated`.
        length: int, or None for that of the list, which is then returned as it is.
        padding: int or float.
    Returns:
        list. Not to be changed.

    >>> from etcmodel import preprocessing
    >>> preprocessing.padded([2, 7, 3], length=5)
    [2, 7, 3, 0, 0]
    """
    is_repeated = isinstance(values, Repeated)
    count = values.count if is_repeated else len(values)
    rest = 0 if length is None else length - count
    if rest > 0:
        return Joined(values, Repeated(padding, rest))
    return Joined(values) if is_repeated else values
