"""Checked access to the fields of raw examples (JSON objects)."""

import functools
import numbers

from etcmodel import shown_values
from etcmodel.text import labels

HALF_A_PAIR = "has half of a surrogate pair, no character"
_MAX_NAMES_SHOWN = 400  # Enough to name all columns of a table.


class Fields:
    """The fields of one raw example; errors name the example and the field.

    Args:
        example_id: str or int.
        raw: dict.

    >>> from etcmodel.preprocessing import json_fields
    >>> json_fields.Fields("7", {"text": "Good!"}).filled_text("text")
    'Good!'
    >>> json_fields.Fields("7", {"txt": "Good!"}).filled_text("text")
    Traceback (most recent call last):
        ...
    ValueError: example '7': field `text` is missing. Its fields: ['txt']
    """

    noun = "example"  # What it is called in errors.

    def __init__(self, example_id, raw):
        self.example_id, self.raw = example_id, raw

    def error(self, field, problem, value):
        """The ValueError to raise for a field."""
        return ValueError(
            f"{self.noun} {self.example_id!r}: field `{field}` {problem}. Received: "
            f"{shown_values.shown(value)}"
        )

    def missing(self, *names, why=""):
        """The ValueError for a field with one of several names; it lists the existing fields."""
        problem = f"field {_either(names)} is missing{why}. {_fields_there(self.raw)}"
        return ValueError(f"{self.noun} {self.example_id!r}: {problem}")

    def check_labels(self, *names):
        """Raises a ValueError if a field that training needs is missing or null."""
        for name in names:
            if self.raw.get(name) is None:
                raise self.missing(
                    name, why=", and training needs it; elsewhere give --is_training=false"
                )

    def get(self, field):
        """The value of a required field.

        Raises:
            ValueError: if it is not.
        """
        if field not in self.raw:
            raise self.missing(field)
        return self.raw[field]

    def text(self, field, *, optional=False):
        """The str in a field; None if the field is optional and missing or null.

        Raises:
            ValueError: if it holds something else.
        """
        value = self.raw.get(field) if optional else self.get(field)
        if isinstance(value, str) or (optional and value is None):
            return value
        raise self.error(field, "must be a string", value)

    def filled_text(self, field):
        """The str in a field, which must not be blank.

        Raises:
            ValueError: if it holds something else.
        """
        text = self.text(field)
        if not text.strip():
            raise self.error(field, "must not be empty", text)
        return text

    def check_utf8(self, field, text):
        """Raises a ValueError for a str that cannot be encoded in UTF-8."""
        if not is_encodable(text):
            raise self.error(field, HALF_A_PAIR, text)

    def list_of(self, field, item_type, items, *, optional=False):
        """The list in a field; empty if the field is optional and missing or null.

        Args:
            field: str.
            item_type: type of every item.
            items: str. The name of the items in errors.
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

    def objects(self, field, *, optional=False):
        """The objects in a field, as in `objects_of`; empty if it is optional and missing.

        Raises:
            ValueError: if it holds something else.
        """
        if optional and self.raw.get(field) is None:
            return []
        found = objects_of(self.get(field))
        if found is None:
            problem = "must be a list of objects, or lists of their fields, all as long"
            raise self.error(field, problem, self.raw[field])
        return found

    def columns(self, field, value, names):
        """The lists of an object's fields, in the layout of Hugging Face `datasets`.

        Args:
            field: str. The name of the value in errors.
            value: dict of lists.
            names: sequence of str. Required fields.
        Raises:
            ValueError: if one is missing, or they are not lists of equal length.
        """
        found = [value.get(name) for name in names]
        if not is_list_of(found, list) or len(set(map(len, found))) > 1:
            listed = ", ".join(f"`{name}`" for name in names)
            raise self.error(field, f"must have lists {listed}, as long", value)
        return found

    def number(self, field):
        """The finite float in a field, maybe as a str; None if it is missing or empty.

        Raises:
            ValueError: if it holds something else.
        """
        value = self.raw.get(field)
        return None if value is None or value == "" else self._said(field, value, labels.finite)

    def label(self, field):
        """The label in a field, as a str; None if it is missing or empty.

        Raises:
            ValueError: if it is not a str, an int, true or false.
        """
        value = self.raw.get(field)
        return None if value is None else self._said(field, value, labels.named) or None

    def labels(self, field, separator):
        """The labels in a field, without duplicates: a tuple of str; None if it is missing.

        Raises:
            ValueError: if it is neither a list of labels nor a str with separators between them.
        """
        value = self.raw.get(field)
        read = functools.partial(labels.several, separator=separator)
        return None if value is None else self._said(field, value, read)

    def _said(self, field, value, read):
        try:
            return read(value)
        except ValueError as error:
            raise self.error(field, str(error), value) from None


def id_of(raw, *names, default=None, noun="an example"):
    """The id of a raw example: a str; an integer is converted to its digits.

    Args:
        raw: dict.
        *names: str. Fields; the id is in the first one that is not missing, null or blank.
        default: str. The id of an example without one; None: the id is required.
        noun: str. The name of an example in errors.
    Raises:
        ValueError: naming the field, if the example is not an object, or its id is missing, of
            another type, or contains half of a surrogate pair.
    """
    require_object(raw, noun)
    given = [name for name in names if not _is_blank(raw.get(name))]
    if not given and default is None:
        raise ValueError(f"{noun} has no field {_either(names)}. {_fields_there(raw)}")
    value = raw[given[0]] if given else default
    if is_int(value):
        return str(value)
    if isinstance(value, str) and is_encodable(value):
        return value
    problem = HALF_A_PAIR if isinstance(value, str) else "must be a string or a whole number"
    name = [*given, *names][0]
    raise ValueError(f"{noun}'s field `{name}` {problem}. Received: {shown_values.shown(value)}")


def identified(raw, *names, default=None):
    """The `Fields` of a raw example, with the id from `id_of`.

    >>> from etcmodel.preprocessing import json_fields
    >>> fields = json_fields.identified({"id": 7, "text": "Good."}, "id")
    >>> fields.example_id, fields.text("text")
    ('7', 'Good.')
    """
    return Fields(id_of(raw, *names, default=default), raw)


def _is_blank(value):
    return value is None or (isinstance(value, str) and not value.strip())


def _either(names):
    first, *others = (f"`{name}`" for name in names)
    return f"{first} (or {', '.join(others)})" if others else first


def _fields_there(raw):
    return f"Its fields: {shown_values.shortened(repr(sorted(map(str, raw))), _MAX_NAMES_SHOWN)}"


def objects_of(value):
    """The objects in a list, or in lists of their fields (the layout of Hugging Face `datasets`).

    Args:
        value: should be a list of dict, or a dict of lists of equal length.
    Returns:
        list of dict; None if it is neither.
    """
    columns = list(value.values()) if isinstance(value, dict) else []
    if columns and is_list_of(columns, list) and len(set(map(len, columns))) == 1:
        return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    return value if is_list_of(value, dict) else None


def require_object(raw, noun="an example"):
    """Checks that a raw example is a JSON object.

    Raises:
        ValueError: if it is not.

    >>> from etcmodel.preprocessing import json_fields
    >>> json_fields.require_object({"text": "Good!"})
    >>> json_fields.require_object(["Good!"])
    Traceback (most recent call last):
        ...
    ValueError: an example must be a JSON object. Received: ['Good!']
    """
    if not isinstance(raw, dict):
        raise ValueError(f"{noun} must be a JSON object. Received: {shown_values.shown(raw)}")


def is_encodable(text):
    """Whether a str can be encoded in UTF-8: half of a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_int(value):
    """Whether a value is an integer and not a bool."""
    if type(value) is int:  # By far the most frequent case, and the check below is slow.
        return True
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_list_of(value, item_type):
    """Whether a value is a list of items of one type; a bool does not count as an int."""
    if not isinstance(value, list):
        return False
    types = set(map(type, value))  # Few types, even for 10,000 items.
    return all(issubclass(t, item_type) and (t is not bool or item_type is bool) for t in types)
