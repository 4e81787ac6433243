"""Labels as people write them, and their numbers: one class, several, or a number itself."""

import math
import numbers

from etcmodel import shown_values

# Kinds of labels of texts, named as in Hugging Face's configs.
SINGLE_LABEL = "single_label_classification"
MULTI_LABEL = "multi_label_classification"
REGRESSION = "regression"
PROBLEM_TYPES = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)
LABEL = "a label: a string, a whole number, true or false"
SEPARATOR = "|"
_MAX_NAMED = 5
_MAX_WHOLE = 2**53  # Beyond, floats skip whole numbers.


def named(value):
    """Reads a label from a value: str, '' for none.

    Args:
        value: str, whole number, or truth value. A whole number may be a float: in a column with
            a missing cell, pandas makes 3.0 of 3.
    Raises:
        ValueError: saying what it must be, if it is something else.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_WHOLE:
        value = int(value)
    if isinstance(value, str | numbers.Integral):
        return str(value).strip()
    raise ValueError(f"must be {LABEL}")


def several(value, separator=SEPARATOR):
    """Reads several labels from a value: tuple of str, each once.

    Args:
        value: list of labels, or str with separators between them.
        separator: str.
    Raises:
        ValueError: saying what it must be, if it is something else.
    """
    parts = value.split(separator) if isinstance(value, str) else value
    try:
        if isinstance(parts, list | tuple):
            return tuple(dict.fromkeys(filter(None, map(named, parts))))
    except ValueError:
        pass
    raise ValueError("must be a list of labels")


def finite(value):
    """Reads a finite float from a value, which may be a str.

    Raises:
        ValueError: saying what it must be, if it is something else.
    """
    try:
        # Python reads "1_000" as 1000, which nobody writes in data.
        is_code = isinstance(value, bool) or (isinstance(value, str) and "_" in value)
        number = math.nan if is_code else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


def in_order(found):
    """Sorts distinct labels: whole numbers by size, others as text. A tuple of str."""
    return tuple(sorted(set(found), key=_place))


def _place(label):
    return (0, int(label), label) if is_whole(label) else (1, 0, label)


def is_whole(label):
    """Returns whether a label's name is a whole number: bool."""
    label = label.removeprefix("-")
    return label.isascii() and label.isdigit() and len(label) < 20


class Labels:
    """A classifier's labels in the order of its outputs; converts the labels of texts to numbers.

    Args:
        names: sequence of str; or int, the number of labels without names.
        problem_type: str, one of `PROBLEM_TYPES`; a regression has no names.
        separator: str. Separates several labels in one str.
    """

    def __init__(self, names, problem_type=SINGLE_LABEL, separator=SEPARATOR):
        is_named = not isinstance(names, int)
        self.names = tuple(names if is_named else map(str, range(names)))
        self.problem_type, self._separator = problem_type, separator
        self._is_named = is_named
        self._may_count = not is_named or not any(map(is_whole, self.names))
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def words(self, value):
        """Returns the labels of a value: tuple of str; for errors see `named` and `several`."""
        if self.problem_type == MULTI_LABEL:
            return several(value, self._separator)
        return tuple(filter(None, (named(value),)))

    def has(self, value):
        """Returns whether there is such a label."""
        try:
            self.target(value)
        except ValueError:
            return False
        return True

    def target(self, value):
        """Converts a value to a training target: int, 0 or 1 for each label, or float.

        Args:
            value: as for `named`, `several` or `finite`. If no name is a number, a whole number may
                also be the label's index, from 0.
        Raises:
            ValueError: saying what it must be, if there is no such label.
        """
        if self.problem_type == REGRESSION:
            return finite(value)
        if self.problem_type == SINGLE_LABEL:
            return self._number(value)
        if self._may_count and _are_flags(value) and len(value) == len(self.names):
            return [int(x) for x in value]
        given = [self._number(word) for word in several(value, self._separator)]
        return [int(number in given) for number in range(len(self.names))]

    def _number(self, value):
        word = named(value)
        if word in self._numbers:
            return self._numbers[word]
        if self._may_count and not isinstance(value, str) and 0 <= value < len(self.names):
            return int(value)
        if not self._is_named:
            raise ValueError(
                f"must be a whole number below {len(self.names)}, since the labels have no names. "
                f"Received: {shown_values.shown(value)}"
            )
        known = ", ".join(map(repr, self.names[:_MAX_NAMED]))
        more = ", ..." if len(self.names) > _MAX_NAMED else ""
        raise ValueError(
            f"{shown_values.shown(value)} is none of the {len(self.names)} labels: {known}{more}"
        )


def _are_flags(value):
    """Whether a value has a flag for each label."""
    return isinstance(value, list | tuple) and all(
        isinstance(x, numbers.Integral) and x in (0, 1) for x in value
    )
