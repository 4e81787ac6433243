"""Streams raw data files: JSON arrays, JSON lines; compressed or not, local or remote.

No TensorFlow is needed for local files.
"""

import contextlib
import gzip
import json
import logging
import re
import zlib

import ijson

__all__ = [
    "by_id",
    "check_utf8",
    "example_reader",
    "load_json_line",
    "open_bytes",
    "read_json_elements",
    "read_json_values",
    "read_lines",
]

_WHITE_SPACE = re.compile(r"\s*")
_MAX_SKIPPED_NAMED = 20
_BROKEN_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)


def by_id(examples):
    """Examples by their `example_id`, in their order.

    Raises:
        ValueError: if two have the same: in predictions and metrics one would hide the other.
    """
    found = {}
    for example in examples:
        if found.setdefault(example.example_id, example) is not example:
            raise ValueError(f"There are two examples with the id {example.example_id!r}.")
    return found


def open_bytes(path):
    """The bytes of a file, unpacked where its name ends in `.gz`; the caller closes it."""
    if "://" in str(path):
        import tensorflow as tf  # Slow to import.

        file = tf.io.gfile.GFile(path, "rb")
    else:
        file = open(path, "rb")  # noqa: SIM115
    return gzip.open(file) if str(path).endswith(".gz") else file


def read_lines(path, *, keep_blank=False):
    """Streams the lines of a file, and holds no more than one of them.

    Args:
        path: str. Compressed where the name ends in `.gz`; local or remote (`gs://…`).
        keep_blank: bool. Also yield lines of white space.

    Yields:
        (line number from 1, str). Bytes that are no UTF-8 are surrogate code points: see
        `check_utf8`.

    Raises:
        ValueError: if a compressed file is broken; names the file and the place.
    """
    number = 0
    try:
        with contextlib.closing(open_bytes(path)) as file:
            for line in file:
                number += 1
                if keep_blank or not line.isspace():
                    yield number, line.decode("utf-8", "surrogateescape")
    except _BROKEN_GZIP as error:
        raise ValueError(f"{path}: broken gzip file after line {number}: {error}") from error


def check_utf8(line):
    """Raises ValueError, with the place, if a line of `read_lines` was not UTF-8."""
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"invalid UTF-8 at character {error.start + 1}") from error


def load_json_line(line):
    """The JSON value of a line of `read_lines`.

    Raises:
        ValueError: if it is not UTF-8 or not JSON.
    """
    check_utf8(line)
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"malformed JSON at column {error.colno}: {error.msg}") from error


def example_reader(read, parse, *, noun="examples"):
    """Makes the function that reads the examples of a task's raw files.

    Args:
        read: function of a path to an iterable over what is in the file: (str, the place, such as
            "line 3"; what `parse` takes).
        parse: function of a raw example to an example; raises ValueError for a malformed one.
        noun: str. What the examples are called in messages.

    Returns:
        A generator function `read_examples`, which tells the rest.
    """

    def parsed(place, raw, check):
        try:
            example = parse(raw)
            if check is not None:
                check(example)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        return example

    def read_examples(path, check=None):
        """Yields the examples that can be used, one at a time, and warns of the others.

        Args:
            path: str.
            check: function of an example that raises a ValueError for one that cannot be used.

        Raises:
            ValueError: if none can be used; names the file, the first one, and what is wrong.
        """
        num_read, num_skipped, first = 0, 0, None
        for place, raw in read(path):
            num_read += 1
            try:
                example = parsed(place, raw, check)
            except ValueError as error:
                num_skipped += 1
                first = first or error
                if num_skipped <= _MAX_SKIPPED_NAMED:
                    logging.warning("skipped %s: %s", path, error)
                continue
            yield example
        if not num_read:
            raise ValueError(f"{path}: the file holds no {noun}")
        if num_skipped == num_read:
            raise ValueError(
                f"{path}: none of the {num_read} {noun} can be used, the first: {first}"
            )
        if num_skipped:
            logging.warning("%s: %d of %d %s skipped", path, num_skipped, num_read, noun)

    return read_examples


def read_json_elements(path):
    """The values of `read_json_values`, each with its place: "element 0" and so on."""
    return ((f"element {index}", value) for index, value in enumerate(read_json_values(path)))


def read_json_values(path):
    """Streams the JSON values of a file, one an example, without holding the whole file.

    Args:
        path: str. A JSON array, on one line or many, or JSON objects one after another (JSON
            lines); compressed where the name ends in `.gz`; local or remote (`gs://…`).

    Yields:
        The elements of the array, or the objects.

    Raises:
        ValueError: if the file is not such JSON in UTF-8; names the file and the place.
    """
    count = 0
    try:
        with contextlib.closing(open_bytes(path)) as file:
            for value in _json_values(file, path):
                yield value
                count += 1
    except ijson.JSONError as error:
        _check_all_utf8(path)
        reason = " ".join(str(error).split())  # It draws a picture over several lines.
        place = _locate_json_error(path) or f"after {count} examples: {reason}"
        raise ValueError(f"{path}: malformed JSON {place}") from error
    except UnicodeDecodeError as error:
        _check_all_utf8(path)
        raise ValueError(f"{path}: invalid UTF-8 after {count} examples: {error}") from error
    except _BROKEN_GZIP as error:
        raise ValueError(f"{path}: broken gzip file after {count} examples: {error}") from error


def _check_all_utf8(path):
    """Raises ValueError with the line of the first bytes that are no UTF-8."""
    for number, line in read_lines(path):
        try:
            check_utf8(line)
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}") from error


def _json_values(file, path):
    first = b" "
    while first.isspace():
        first = file.read(1)
    if first not in (b"[", b"{"):
        found = f"the character {first!r}" if first else "an empty file"
        raise ValueError(f"{path}: expected a JSON array or JSON objects, found {found}")
    file.seek(0)
    if first == b"[":
        return ijson.items(file, "item", use_float=True)
    return ijson.items(file, "", multiple_values=True, use_float=True)


def _locate_json_error(path):
    """'at line …, column …' by reading the whole file again; '' if `json` finds no error."""
    with contextlib.closing(open_bytes(path)) as file:
        text = file.read().decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = len(text) - len(text.lstrip())
    try:
        while position < len(text):
            _, position = decoder.raw_decode(text, position)
            position = _WHITE_SPACE.match(text, position).end()
    except json.JSONDecodeError as error:
        return f"at line {error.lineno}, column {error.colno}: {error.msg}"
    return ""
