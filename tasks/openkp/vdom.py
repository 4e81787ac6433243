"""The VDOM of a page: its rendered elements, their words in the text, and their appearance."""

import bisect
import itertools
import json
import math
import typing

from etcmodel import bounded_json
from etcmodel.preprocessing.json_fields import is_int
from etcmodel.text import characters

from . import phrases
from .config import FLOAT_FEATURES, FONT_FEATURES, INDICATOR_FEATURES

__all__ = ["Element", "check_complete", "features", "font_size_to_font_id", "parse"]

# Positions of the features in the 20 numbers of an element; those of its parent follow 10 later.
_NUM_NUMBERS = 20
_PARENT = 10
_PLACES = {
    "x_coords": 0,
    "widths": 1,
    "y_coords": 2,
    "heights": 3,
    "block_indicator": 4,
    "inline_indicator": 5,
    "heading_indicator": 6,
    "leaf_indicator": 7,
    "font_ids": 8,
    "bold_indicator": 9,
}


def _places(names):
    """(feature, place of its number) for each of the features."""
    for name in names:
        kind = name.removeprefix("global_")
        offset = _PARENT if kind.startswith("parent_") else 0
        yield name, _PLACES[kind.removeprefix("parent_")] + offset


_INDICATOR_PLACES = tuple(_places(INDICATOR_FEATURES))
_NUMBER_TYPES = {int, float}  # Not bool, which is distinct in JSON, too.
_BITS = {0, 1}
# Font sizes, in pixels, at which the next bucket begins.
_FONT_BOUNDARIES = (1, *range(9, 26), 30, 35, 40, 45, 50)


class Element(typing.NamedTuple):
    """A text element of a page.

    Attributes:
        begin, end: int. Its words are `words[begin:end]` of the page.
        numbers: list of 20 int or float. Its appearance: see `parse` and `features`.
    """

    begin: int
    end: int
    numbers: list


def font_size_to_font_id(font_size):
    """The bucket of a font size, rounded to whole pixels (a half to even): 0 for none, 23 at most.

    Args:
        font_size: int or float, finite.
    """
    return bisect.bisect_right(_FONT_BOUNDARIES, round(font_size))


# By visual feature: the position of its number, and the function that converts it.
_COLUMNS = {
    name: (place, kind)
    for names, kind in (
        (FLOAT_FEATURES, float),
        (INDICATOR_FEATURES, int),
        (FONT_FEATURES, characters.Memo(font_size_to_font_id).__getitem__),
    )
    for name, place in _places(names)
}


def parse(value, words):
    """The elements of a page.

    Args:
        value: str, a JSON list of elements, or such a list. An element has a `text`, its first word
            `start_idx` and the word after its last `end_idx` in the page's text, and 20 numbers in
            `feature`: x, width, y, height, whether it is a block, inline, a heading, a leaf of the
            tree; font size, whether it is bold; the same of its parent.
        words: tuple of str. The words of the page.

    Returns:
        tuple of `Element`, without the elements that have no words.

    Raises:
        ValueError: if it is not such a list, or an element does not agree with the text.
    """
    elements, end = [], 0
    for index, raw in enumerate(_load(value)):
        try:
            begin, end = _span(raw, words, end)
        except ValueError as error:
            raise _of_element(index, error) from error
        elements.append(Element(begin, end, raw.get("feature")))
    _check_all_numbers([element.numbers for element in elements])
    elements = tuple(element for element in elements if element.begin < element.end)
    if not elements:
        raise ValueError("field `VDOM` has no element with text")
    return elements


def features(elements):
    """The visual features of elements.

    Args:
        elements: sequence of `Element` of `parse`.

    Returns:
        dict from visual feature (`config`) to list with one float per element, or int for ids and
        indicators.
    """
    columns = list(zip(*(element.numbers for element in elements), strict=True))
    columns = columns or [()] * _NUM_NUMBERS
    return {name: list(map(kind, columns[place])) for name, (place, kind) in _COLUMNS.items()}


def check_complete(value, words):
    """Checks that the elements belong to one page and cover all of its text.

    Args:
        value, words: as in `parse`; the elements also have an `Id`, that of the page.

    Raises:
        ValueError: if there is no element, one does not agree with the text, does not begin where
            the one before ends or has another `Id`, or the text goes on after the last.
    """
    elements = _load(value)
    if not elements:
        raise ValueError("field `VDOM` has no element")
    end = 0
    for index, raw in enumerate(elements):
        try:
            begin, next_end = _span(raw, words, end)
            _check_equal("start_idx", begin, end, "the end of the element before")
            _check_equal("Id", raw.get("Id"), elements[0].get("Id"), "that of the first element")
        except ValueError as error:
            raise _of_element(index, error) from error
        end = next_end
    if end != len(words):
        raise ValueError(
            f"field `VDOM` ends after {end} words, the text has {len(words)}: there must be an "
            "element for each word"
        )


def _check_equal(name, value, expected, what):
    if value != expected:
        raise ValueError(f"`{name}` must be {expected!r}, {what}. Received: {value!r}")


def _load(value):
    """The elements of a page, not checked yet: a list."""
    if value is None:
        raise ValueError("field `VDOM` is missing")
    if isinstance(value, str):
        try:
            value = bounded_json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"field `VDOM` is malformed JSON at character {error.pos + 1}: {error.msg}"
            ) from error
        except ValueError as error:
            raise ValueError(f"field `VDOM`: {error}") from error
    if not isinstance(value, list):
        raise ValueError(f"field `VDOM` must be a list, not {type(value).__name__}")
    return value


def _of_element(index, error):
    return ValueError(f"VDOM element {index}: {error}")


def _span(raw, words, previous_end):
    """(number of the first word, number after the last) of an element."""
    if not isinstance(raw, dict):
        raise ValueError(f"must be an object, not {type(raw).__name__}")
    begin, end = raw.get("start_idx"), raw.get("end_idx")
    if not (is_int(begin) and is_int(end) and previous_end <= begin <= end <= len(words)):
        raise ValueError(
            f"`start_idx` and `end_idx` must lie in order between {previous_end} (the element "
            f"before) and {len(words)} (the text). Received: {begin!r}, {end!r}"
        )
    text, expected = raw.get("text"), phrases.joined(words[begin:end])
    if text != expected:
        raise ValueError(
            f"`text` must be the words {begin} to {end} of the page, {expected!r}. "
            f"Received: {text!r}"
        )
    return begin, end


def _check_all_numbers(rows):
    """Checks the numbers of all elements: of all at once first."""
    if all(map(_is_row, rows)) and _are_numbers(itertools.chain.from_iterable(rows)):
        columns = list(zip(*rows, strict=True))
        if all(_BITS.issuperset(columns[place]) for _, place in _INDICATOR_PLACES if columns):
            return
    for index, numbers in enumerate(rows):
        try:
            _check_numbers(numbers)
        except ValueError as error:
            raise _of_element(index, error) from error


def _check_numbers(numbers):
    if not _is_row(numbers):
        raise ValueError(f"`feature` must be a list of {_NUM_NUMBERS} numbers")
    if not _are_numbers(numbers):
        raise ValueError(f"`feature` must hold finite numbers only. Received: {numbers}")
    for name, place in _INDICATOR_PLACES:
        if numbers[place] not in _BITS:
            raise ValueError(f"`{name}` must be 0 or 1. Received: {numbers[place]}")


def _is_row(numbers):
    return isinstance(numbers, list) and len(numbers) == _NUM_NUMBERS


def _are_numbers(values):
    """Whether all are numbers, and finite."""
    values = list(values)
    try:
        return _NUMBER_TYPES.issuperset(map(type, values)) and all(map(math.isfinite, values))
    except OverflowError:  # An integer too large for a float.
        return False
