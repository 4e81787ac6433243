"""Spans of a page in Natural Questions' files, and their equality."""

from typing import NamedTuple

from etcmodel.preprocessing.json_fields import is_int

__all__ = ["NO_SPAN", "Span", "are_same_sets", "span_of"]


class Span(NamedTuple):
    """A part of a page, in tokens and in bytes of its HTML.

    Attributes:
        start, end: int. The tokens `[start, end)`; both are -1 for no span.
        start_byte, end_byte: int. The same in bytes; both are -1 if they are not known.
    """

    start: int
    end: int
    start_byte: int = -1
    end_byte: int = -1

    @property
    def exists(self):
        """Whether it is an answer: either kind of offset suffices, as in the official scorer."""
        return self.start >= 0 or self.start_byte >= 0

    def is_same(self, other):
        """Whether both have bytes and these agree, or both have tokens and these agree."""
        same_tokens = self.start >= 0 and self[:2] == other[:2]
        return same_tokens or (self.start_byte >= 0 and self[2:] == other[2:])


NO_SPAN = Span(-1, -1)


def are_same_sets(spans, others):
    """Whether each span of either side equals one of the other side."""
    return all(any(span.is_same(other) for other in others) for span in spans) and all(
        any(span.is_same(other) for span in spans) for other in others
    )


def span_of(raw):
    """Parses a `Span` from a dict in the data set's format.

    Args:
        raw: dict. `start_token` and `end_token`, and possibly `start_byte` and `end_byte`; negative
            values mean no span.

    Raises:
        ValueError: if they are not integers, if only one of the two is negative, or if the start is
            not before the end.
    """
    if not isinstance(raw, dict):
        raise ValueError("must be an object")
    return Span(*_offsets(raw, "token"), *_offsets(raw, "byte", optional=True))


def _offsets(raw, unit, optional=False):
    """(start, end) in one unit, (-1, -1) for none."""
    names = f"start_{unit}", f"end_{unit}"
    if optional and not any(name in raw for name in names):
        return -1, -1
    start, end = (raw.get(name) for name in names)
    start_name, end_name = (f"`{name}`" for name in names)
    if not (is_int(start) and is_int(end)):
        raise ValueError(f"must have integers {start_name} and {end_name}")
    if (start < 0) != (end < 0):
        raise ValueError(f"must have both {start_name} and {end_name}, or -1 for both")
    if 0 <= end <= start:
        raise ValueError(f"must have its {start_name} before its {end_name}")
    return (int(start), int(end)) if start >= 0 else (-1, -1)
