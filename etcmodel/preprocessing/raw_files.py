"""The examples of raw files: what the opener yields, with what cannot be read in its place."""

import json
import logging
import os

from etcmodel import opener
from etcmodel.opener import check_utf8, read_entries, read_lines, read_text

__all__ = [
    "by_id",
    "check_readable",
    "check_utf8",
    "example_reader",
    "fields_of",
    "load_json_text",
    "read_entries",
    "read_json_elements",
    "read_json_member",
    "read_json_texts",
    "read_json_values",
    "read_lines",
    "read_text",
    "read_text_rows",
    "row_reader",
    "unreadable",
]

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

    >>> from etcmodel.preprocessing import raw_files
    >>> read = raw_files.example_reader(raw_files.read_json_elements, parse=lambda raw: raw["text"])
    >>> list(read("reviews.csv"))
    ['A good book.', 'A bad book.', 'Good!', 'Bad!']
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


def read_json_elements(path, name=None):
    """The values of `read_json_values`, each with its place: "element 0", "line 1" or "row 1".

    Args:
        path: str.
        name: str. As in `read_json_member`. None: there is no such array.

    >>> from etcmodel.preprocessing import raw_files
    >>> next(raw_files.read_json_elements("reviews.csv"))
    ('line 2', {'text': 'A good book.', 'label': 'pos'})
    """
    return ((row.place, _value(row)) for row in opener.read_rows(path, member=name))


def read_json_values(path):
    """Streams the values of a file, one an example, without holding the whole file.

    Args:
        path: str. A JSON array, on one line or many; JSON objects one a line (JSON lines) or one
            after another; Parquet or Arrow; see `opener.read_rows`.

    Yields:
        The elements of the array, the objects, or the rows as dicts. For one that cannot be read,
        such as a line that is cut off, what `check_readable` refuses.

    Raises:
        ValueError: if the file is nothing of this kind; names the file and the place.
        OSError: naming the file, if it cannot be read.

    >>> from etcmodel.preprocessing import raw_files
    >>> next(raw_files.read_json_values("reviews.csv"))
    {'text': 'A good book.', 'label': 'pos'}
    """
    return map(_value, opener.read_rows(path))


def read_json_member(path, name):
    """Likewise of a file that may be one JSON object, whose array of a name has the examples.

    Args:
        path: str.
        name: str.

    Yields, raises:
        As `read_json_values`; also a ValueError if all that there is is one object of several
        lines without such an array. Of a line, it is an example.
    """
    return map(_value, opener.read_rows(path, member=name))


def read_json_texts(path):
    """Likewise, but not parsed yet, which takes long: (place, str for `load_json_text`) of each."""
    for row in opener.read_rows(path, is_parsed=False):
        value = _value(row)
        yield row.place, value if isinstance(value, str) else json.dumps(value)


def load_json_text(text):
    """The JSON value of a str of `read_json_texts`.

    Raises:
        ValueError: saying what is wrong, if it is not UTF-8 or not JSON, or could not be read.
    """
    value = opener.load_json_line(text)
    check_readable(value)
    return value


def _value(row):
    return unreadable(row.problem) if row.problem else row.value


def read_text_rows(path, table=None, tells=True):
    """Streams the texts of a file or folder, as they stand there.

    Args:
        path: str. What `opener.read_rows` takes, tables among it, or a folder of `.txt` files.
        table: `opener.Table`. None: a table is as its header and its name tell.
        tells: bool. Whether to warn of what is left out, and the like.

    Yields:
        dict of str: `place` (such as "line 3"), `id` (the id of an example without one of its own)
        and `fields`, a dict; of a folder `text` and `label` instead, the latter the name of the
        folder in it where the text lies, None for none. Or `place` and `problem`, where something
        cannot be read.

    Raises:
        ValueError: naming the file, if it is damaged, or a table has no proper header.
    """
    if opener.is_folder(path):
        for name, text, label, problem in opener.read_folder(path, tells):
            found = {"id": name, "text": text, "label": label}
            yield {"place": name, **({"problem": problem} if problem else found)}
        return
    name = os.path.basename(path)
    for row in opener.read_rows(path, table=table or opener.Table(), tells=tells):
        found = {"id": f"{name}:{row.number}", "fields": row.value}
        yield {"place": row.place, **({"problem": row.problem} if row.problem else found)}


def fields_of(row, **names):
    """The fields of an example, a dict.

    Args:
        row: dict of `read_text_rows`.
        **names: what fields the `text` and the `label` of a folder's file become: str.
    Raises:
        ValueError: if the row has a problem instead.
    """
    if "problem" in row:
        raise ValueError(row["problem"])
    return row["fields"] if "fields" in row else {name: row[x] for x, name in names.items()}


def row_reader(parse, table=None):
    """The function that reads the examples of a file or folder: see `example_reader`.

    Args:
        parse: function of a dict of `read_text_rows` to an example.
        table: as in `read_text_rows`.
    """
    return example_reader(
        lambda path: ((x["place"], x) for x in read_text_rows(path, table)), parse
    )
