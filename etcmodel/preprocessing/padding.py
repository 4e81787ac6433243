"""Lists with parts that recur in most records, such as padding; these are serialized once."""

import typing

_CHANGES = (
    *("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"),
    *("__delitem__", "__iadd__", "__imul__", "__setitem__"),
)


class Repeated(typing.NamedTuple):
    """A repeated number, as a part of a `Joined`.

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
    """A list of int or float made of parts, used as a feature of a record.

    It behaves like a list, but changing it raises a TypeError, since records are written from its
    parts.

    Attributes:
        parts: tuple. Each part is a tuple, a range or a `Repeated`; long ranges and repetitions are
            cheap to write.

    Args:
        *parts: as in `parts`; lists are copied.

    >>> from etcmodel import preprocessing
    >>> preprocessing.Joined([2, 7], range(3), preprocessing.Repeated(0, 2))
    [2, 7, 0, 1, 2, 0, 0]
    """

    __slots__ = ("parts",)

    def __init__(self, *parts):
        super().__init__()
        counted = {}  # The numbers of a range are made once, even if it occurs several times.
        for part in parts:
            if isinstance(part, Repeated):
                part = [part.number] * part.count
            elif isinstance(part, range):
                part = counted.get(part) or counted.setdefault(part, list(part))
            super().extend(part)
        # Later changes to the caller's lists must not affect these.
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
    """Pads a list with a number to a length.

    Args:
        values: list of int or float, or a `Repeated`.
        length: int, or None to return the list as it is.
        padding: int or float.
    Returns:
        list. It must not be changed.

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
