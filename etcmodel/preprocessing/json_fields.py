"""Checked access to the fields of raw examples, which are JSON objects."""

import math
import numbers

__all__ = ["Fields", "identified", "is_int", "is_list_of", "require_object", "shown"]

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
            raise ValueError(
                f"example {self.example_id!r}: field `{field}` is missing. Its fields: "
                f"{sorted(map(str, self.raw))}"
            )
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

    def check_utf8(self, field, text):
        """Raises the ValueError for a str that UTF-8 has no bytes for, which no file can have."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise self.error(field, "has half of a surrogate pair, no character", text) from None

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

    def number(self, field):
        """The finite float that a field holds, maybe as a str; None if it is missing or empty.

        Raises:
            ValueError: if it holds something else.
        """
        value = self.raw.get(field)
        if value is None or value == "":
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise self.error(field, "must be a finite number", value)
        return number

    def label(self, field):
        """The label that a field holds, as a str; None if it is missing or empty.

        Raises:
            ValueError: if it is not a str, an int, true or false.
        """
        value = self.raw.get(field)
        if value is not None and not _is_label(value):
            problem = "must be a label: a string, a whole number, true or false"
            raise self.error(field, problem, value)
        return None if value is None else _label(value) or None

    def labels(self, field, separator):
        """The labels that a field holds: a tuple of str, each once; None if it is missing.

        Raises:
            ValueError: if it is neither a list of labels nor a str with separators between them.
        """
        value = self.raw.get(field)
        if value is None:
            return None
        parts = value.split(separator) if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(map(_is_label, parts)):
            raise self.error(field, "must be a list of labels", value)
        return tuple(dict.fromkeys(filter(None, map(_label, parts))))


def _is_label(value):
    return isinstance(value, str | bool) or is_int(value)


def _label(value):
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def identified(raw, field, default_id=""):
    """The `Fields` of a raw example with the id that it has, a string or a whole number.

    Args:
        raw: dict.
        field: str. That of the id.
        default_id: str. The id of an example without one.
    Raises:
        ValueError: naming the field, if there is no object, or its id is something else.
    """
    require_object(raw)
    example_id = raw.get(field, default_id)
    example_id = str(example_id) if is_int(example_id) else example_id
    if not isinstance(example_id, str):
        raise Fields(default_id, raw).error(field, "must be a string", example_id)
    fields = Fields(example_id or default_id, raw)
    fields.check_utf8(field, fields.example_id)
    return fields


def require_object(raw, noun="an example"):
    """Checks that a raw example is a JSON object.

    Raises:
        ValueError: if it is not.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"{noun} must be a JSON object. Received: {shown(raw)}")


def is_int(value):
    """Whether a value is an integer; a bool is none."""
    if type(value) is int:  # By far the most, and the others are slow to tell.
        return True
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
