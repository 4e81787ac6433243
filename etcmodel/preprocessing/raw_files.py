"""Streams raw data files: JSON arrays, JSON lines; compressed or not, local or remote.

No TensorFlow is needed for local files.
"""

import contextlib
import json
import logging
import re

from etcmodel import bounded_json, line_files
from etcmodel.preprocessing import json_stream, reading

__all__ = [
    "by_id",
    "check_readable",
    "check_utf8",
    "example_reader",
    "load_json_line",
    "open_bytes",
    "read_entries",
    "read_json_elements",
    "read_json_member",
    "read_json_values",
    "read_lines",
    "read_text",
    "unreadable",
]

_INNER_BYTES = re.compile(rb"[\x80-\xbf]")  # Of a character of UTF-8.
_UNREADABLE = "an example that cannot be read"
_MAX_SKIPPED_NAMED = 20


def by_id(examples):
    """Examples by their `example_id`, in their order.

    Raises:
        ValueError: if two have the same: in predictions and metrics one would hide the other.
    """
    return {example.example_id: example for example in with_ids_of_their_own(examples)}


def with_ids_of_their_own(examples):
    """Iterates over examples, of which it keeps the `example_id`s.

    Raises:
        ValueError: at the second one with the same.
    """
    seen = set()
    for example in examples:
        if example.example_id in seen:
            raise ValueError(f"There are two examples with the id {example.example_id!r}.")
        seen.add(example.example_id)
        yield example


def open_bytes(path):
    """As `line_files.open_bytes`; what is read is counted for an estimate of the time left."""
    return line_files.open_bytes(path, reading.metered)


def read_lines(path, *, keep_blank=False):
    """As `line_files.read_lines`, counted likewise.

    Yields:
        (line number from 1, str). Bytes that are no UTF-8 are surrogate code points: see
        `check_utf8`.
    """
    for number, line in line_files.read_lines(path, keep_blank=keep_blank, wrap=reading.metered):
        yield number, line.decode("utf-8", "surrogateescape")


def check_utf8(line):
    """Raises ValueError, with the place, if a line of `read_lines` was not UTF-8."""
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"invalid UTF-8 at character {error.start + 1}") from error


def read_entries(path):
    """The lines of a list, without white space around them and a byte order mark: list of str.

    Raises:
        ValueError: naming the file and the line, if one is not UTF-8.
    """
    entries = []
    for number, line in read_lines(path):
        try:
            check_utf8(line)
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}") from error
        entries.append(line.removeprefix("\ufeff").strip())
    return entries


def read_text(path, open_file=open_bytes):
    """The text of a whole file.

    Args:
        path: str. As for `open_bytes`.
        open_file: function of the path to a binary file.

    Raises:
        ValueError: saying what is wrong, if it is too long, or not UTF-8, or a broken `.gz`.
        OSError: naming the file, if it cannot be read.
    """
    try:
        with line_files.naming(path), contextlib.closing(open_file(path)) as file:
            content = file.read(bounded_json.MAX_BYTES + 1)
    except line_files.BROKEN_GZIP as error:
        raise ValueError(f"broken gzip file: {error}") from error
    if problem := bounded_json.problem_of_size(len(content)):
        raise ValueError(problem)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"invalid UTF-8 at byte {error.start + 1}") from error


def load_json_line(line):
    """The JSON value of a line of `read_lines`.

    Raises:
        ValueError: if it is not UTF-8 or not JSON.
    """
    num_bytes = len(line.encode("utf-8", "surrogateescape"))
    if problem := bounded_json.problem_of_size(num_bytes):
        raise ValueError(problem)  # First: it was cut off, perhaps within a character.
    check_utf8(line)
    try:
        return bounded_json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"malformed JSON at column {error.colno}: {error.msg}") from error


def unreadable(problem):
    """What takes the place of an example that cannot be read: dict that JSON can hold."""
    return {_UNREADABLE: problem}


def check_readable(raw):
    """Raises ValueError, saying what is wrong, for what `unreadable` made."""
    if isinstance(raw, dict) and _UNREADABLE in raw:
        raise ValueError(str(raw[_UNREADABLE]))


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
            check_readable(raw)
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
        The elements of the array, or the objects. For one that is nested too deep or is too long
        (`bounded_json`), what `check_readable` refuses.

    Raises:
        ValueError: if the file is not such JSON in UTF-8; names the file and the place.
        OSError: naming the file, if it cannot be read.
    """
    return _read_json(path, json_stream.read_values)


def read_json_member(path, name):
    """Streams the elements of the array that a file's JSON object has under a name.

    Args:
        path: str. As in `read_json_values`.
        name: str.

    Yields, raises:
        As `read_json_values`; also a ValueError if there is no such array.
    """
    return _read_json(path, lambda file: json_stream.read_member(file, name))


def _read_json(path, read):
    count = 0
    try:
        with line_files.naming(path), contextlib.closing(open_bytes(path)) as file:
            for value, problem in read(file):
                yield unreadable(problem) if problem else value
                count += 1
    except line_files.BROKEN_GZIP as error:
        raise ValueError(f"{path}: broken gzip file after {count} examples: {error}") from error
    except json_stream.JsonPlaceError as error:
        line, column = _place(path, error.offset)
        if str(error) == json_stream.NO_UTF8:
            message = f"line {line}: {error} at character {column}"
        else:
            message = f"malformed JSON at line {line}, column {column}: {error}"
        raise ValueError(f"{path}: {message}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _place(path, offset):
    """Line and column, both from 1, of a byte of a file."""
    line, column = 1, 1
    with contextlib.closing(open_bytes(path)) as file:
        while offset and (block := file.read(min(line_files.BLOCK, offset))):
            offset -= len(block)
            if num_ends := block.count(b"\n"):
                line, column = line + num_ends, 1
            column += len(_INNER_BYTES.sub(b"", block[block.rfind(b"\n") + 1 :]))
    return line, column
