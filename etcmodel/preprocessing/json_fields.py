"""Checked access to the fields of raw examples, which are JSON objects."""

import numbers

__all__ = ["Fields", "is_int", "is_list_of", "require_object", "shown"]

_MAX_SHOWN = 80


class Fields:
    """The fields of one raw example; what is wrong with one is an error that names both.

    Args:
        example_id: str or int.
        raw: dict.
    """

    def __init__(self, example_id, raw):
        self.example_id, self.raw = example_id, raw

    def error(self, field, problem, value):
        """The ValueError to raise for a field."""
        return ValueError(
            f"example {self.example_id!r}: field `{field}` {problem}. Received: {shown(value)}"
        )

    def get(self, field):
        """The value of a field that must be there.

        Raises:
            ValueError: if it is not.
        """
        if field not in self.raw:
            raise ValueError(f"example {self.example_id!r}: field `{field}` is missing")
        return self.raw[field]

    def text(self, field, *, optional=False):
        """The str that a field holds; None where it is optional and missing or null.

        Raises:
            ValueError: if it holds something else.
        """
        value = self.raw.get(field) if optional else self.get(field)
        if isinstance(value, str) or (optional and value is None):
            return value
        raise self.error(field, "must be a string", value)

    def list_of(self, field, item_type, items, *, optional=False):
        """The list that a field holds; empty where it is optional and missing or null.

        Args:
            field: str.
            item_type: type. That of every item.
            items: str. What to call the items.
            optional: bool.
        Raises:
            ValueError: if it holds something else.
        """
        if optional and self.raw.get(field) is None:
            return []
        value = self.get(field)
        if not is_list_of(value, item_type):
            raise self.error(field, f"must be a list of {items}", value)
        return value


def require_object(raw, noun="an example"):
    """Checks that a raw example is a JSON object.

    Raises:
        ValueError: if it is not.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"{noun} must be a JSON object. Received: {shown(raw)}")


def is_int(value):
    """Whether a value is an integer; a bool is none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_list_of(value, item_type):
    """Whether a value is a list of items of one type; a bool is no int."""
    if not isinstance(value, list):
        return False
    types = set(map(type, value))  # Few, where there may be 10,000 items.
    return all(issubclass(t, item_type) and (t is not bool or item_type is bool) for t in types)


def shown(value):
    """A value for an error message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
