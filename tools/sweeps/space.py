"""The search space of a sweep: choices or a range for each option.

TensorFlow is not needed.
"""

import dataclasses
import itertools
import math
import re

from etcmodel.options import config_files
from etcmodel.shown_values import shortened, shown

__all__ = ["Choices", "Range", "as_json", "as_text", "grid", "parse", "parse_all", "read_yaml"]

_NAME = re.compile(r"[a-zA-Z]\w*")
# Python also reads "nan" and "1_000", which are texts here.
_NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_FORMS = "name=value,value,… or name=low:high or name=low:high:log"


@dataclasses.dataclass(frozen=True)
class Choices:
    """Choices of an option: tuple of int, float and str."""

    values: tuple


@dataclasses.dataclass(frozen=True)
class Range:
    """All values from `low` to `high`; integers if both are.

    Raises:
        ValueError: if there are none.
    """

    low: int | float
    high: int | float
    is_log: bool = False

    def __post_init__(self):
        if not self.low < self.high:
            raise ValueError(f"a range begins below its end. Received: {self.low}:{self.high}")
        if self.is_log and self.low <= 0:
            raise ValueError(f"a range with `log` begins above 0. Received: {self.low}")


def parse(text):
    """Parses a dimension, such as "learning_rate=1e-5,3e-5" or "learning_rate=1e-5:1e-4:log".

    Returns:
        (name, `Choices` or `Range`).
    Raises:
        ValueError: naming the flag, for another form.
    """
    name, equals, values = text.partition("=")
    source = f"--space={shortened(text, 200)}"
    if not (equals and _NAME.fullmatch(name) and values):
        raise ValueError(f"{source}: give {_FORMS}.")
    low, *others = values.split(":")
    if not others:
        return name, _choices(values.split(","), source)
    if len(others) > 2 or others[1:] not in ([], ["log"]):
        raise ValueError(f"{source}: give {_FORMS}.")
    return name, _range(low, others[0], len(others) == 2, source)


def parse_all(items):
    """Parses the dimensions of a flag with comma-separated items: dict, as in `read_yaml`.

    Args:
        items: sequence of str, such as ("learning_rate=1e-5", "3e-5", "train_batch_size=8:64"): one
            without `=` is a further value of the one before.
    Raises:
        ValueError: naming the flag, as in `parse`, or for a repeated option.
    """
    texts = []
    for item in items:
        if "=" in item or not texts:
            texts.append(item)
        else:
            texts[-1] += f",{item}"
    space = {}
    for name, dimension in map(parse, texts):
        if name in space:
            raise ValueError(f"--space: `{name}` is given twice. Give all of its values at once.")
        space[name] = dimension
    return space


def read_yaml(path):
    """Reads the space in a YAML file: dict from name to `Choices` or `Range`.

    Args:
        path: str. An entry is `name: [value, …]`, `name: value`, or `name: {low: …, high: …}`, also
            with `log: true`.
    Raises:
        ValueError: naming the file and the entry, for any other form.
    """
    space = {}
    for name, value in config_files.read_mapping(path, "--space_file").items():
        source = f"{path}: `{shortened(str(name), 100)}`"
        if not _NAME.fullmatch(str(name)):
            raise ValueError(f"{source} is no name of an option.")
        if isinstance(value, dict):
            is_log = value.get("log", False)
            if not {"low", "high"} <= set(value) <= {"low", "high", "log"} or is_log not in (0, 1):
                raise ValueError(f"{source}: a range has `low`, `high` and perhaps `log: true`.")
            space[name] = _range(value["low"], value["high"], bool(is_log), source)
        else:
            space[name] = _choices(value if isinstance(value, list) else [value], source)
    return space


def grid(space):
    """All combinations of a space's choices: list of dict, the last option's changing fastest.

    Raises:
        ValueError: naming the option, if one has a range.
    """
    for name, dimension in space.items():
        if isinstance(dimension, Range):
            raise ValueError(
                f"`{name}` has a range, of which there is no grid: give its values, or "
                "--sampler=tpe."
            )
    values = [dimension.values for dimension in space.values()]
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*values)]


def as_json(space):
    """The space for JSON: dict from name to list, or to dict of a range."""
    return {
        name: list(x.values)
        if isinstance(x, Choices)
        else {"low": x.low, "high": x.high, "log": x.is_log}
        for name, x in space.items()
    }


def as_text(value):
    """A value as on a command line: str."""
    return value if isinstance(value, str) else repr(value)


def _choices(values, source):
    found = tuple(_value(value, source) for value in values)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{source}: give each value once. Received: {shown(values)}")
    return Choices(found)


def _range(low, high, is_log, source):
    ends = _value(low, source), _value(high, source)
    if any(isinstance(end, str) for end in ends):
        given = shortened(f"{low} and {high}", 400)
        raise ValueError(f"{source}: a range is of numbers. Received: {given}")
    try:
        return Range(*ends, is_log)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def _value(value, source):
    """An int or a finite float if the value, or its text, is one; else str."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError(f"{source}: a value is a number or a text. Received: {shown(value)}")
    if _NUMBER.fullmatch(value):
        for kind in (int, float):
            try:
                number = kind(value)
            except ValueError:
                continue
            return number if kind is int or math.isfinite(number) else value
    return value
