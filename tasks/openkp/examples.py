"""Reads OpenKP's files: JSON lines, one per page, with rendered elements (the VDOM) as JSON."""

import dataclasses

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, id_of, is_list_of

from . import phrases

__all__ = [
    "OpenKpExample",
    "page_fields",
    "parse_example",
    "parse_line",
    "read_examples",
    "read_lines",
]


@dataclasses.dataclass(frozen=True)
class OpenKpExample:
    """A page.

    Attributes:
        url: str. Identifies the page.
        text: str. The complete text of the page.
        words: tuple of str. The words of the text (`phrases.split`), of which phrases consist.
        vdom: the value of `VDOM` in the line, not checked yet: see `vdom.parse`. None if missing.
        key_phrases: tuple of tuple of str (its words), or None if the line has no labels.
    """

    url: str
    text: str
    words: tuple
    vdom: object = None
    key_phrases: tuple | None = None


def read_lines(path):
    """Streams the pages of a file.

    Args:
        path: str. JSON lines, or any other format of `raw_files.read_json_values`.

    Yields:
        dict of str: `place`, such as "line 3", and `line`, JSON that may hold escaped malformed
        UTF-8; see `parse_line`.

    Raises:
        ValueError: if the file has another format, or is broken; names it and the place.
    """
    for place, line in raw_files.read_json_texts(path):
        yield {"place": place, "line": line}


def parse_line(raw):
    """Parses a line to an `OpenKpExample`.

    Args:
        raw: dict of `read_lines`.

    Raises:
        ValueError: names the place, and the page and the field if they are known.
    """
    try:
        return _parse_text(raw["line"])
    except ValueError as error:
        raise ValueError(f"{raw['place']}: {error}") from error


def _parse_text(line):
    return parse_example(raw_files.load_json_text(line))


read_examples = raw_files.example_reader(raw_files.read_json_texts, _parse_text, noun="pages")


def parse_example(raw):
    """Parses and checks a JSON object.

    Args:
        raw: dict. `url` and `text`, both str; `VDOM`, a JSON list as str (or the list itself);
            `KeyPhrases`, a list of phrases, each a list of words or of one string of all words.
            Empty phrases, which exist in the dataset, are dropped; labels are optional.

    Returns:
        An `OpenKpExample`.

    Raises:
        ValueError: names the page's URL and the field that is missing or malformed.
    """
    fields = page_fields(raw)
    text = fields.text("text")
    if not text.strip():
        raise ValueError(f"page {fields.example_id!r}: the page is empty: `text` has no words")
    return OpenKpExample(
        url=fields.example_id,
        text=text,
        words=tuple(phrases.split(text)),
        vdom=raw.get("VDOM"),
        key_phrases=_key_phrases(fields),
    )


class _PageFields(Fields):
    noun = "page"


def page_fields(raw):
    """The `json_fields.Fields` of a JSON object, by its `url`.

    Raises:
        ValueError: if it is not an object, or has no URL.
    """
    return _PageFields(id_of(raw, "url", noun="a page"), raw)


def _key_phrases(fields):
    """The words of each phrase that is not empty; None for no labels."""
    value = fields.raw.get("KeyPhrases")
    if value is None:
        return None
    if not is_list_of(value, list) or not all(map(_is_phrase, value)):
        raise fields.error("KeyPhrases", "must be a list of lists of words", value)
    texts = map(phrases.joined, value)
    return tuple(tuple(phrases.split(text)) for text in texts if text)


def _is_phrase(value):
    return is_list_of(value, str)
