"""Reads the examples of raw files, with placeholders for unreadable ones."""

import collections
import functools
import json
import logging
import os

from etcmodel import bounded_json, opener
from etcmodel.opener import check_utf8, read_entries, read_lines, read_text
from etcmodel.preprocessing.json_fields import is_list_of
from etcmodel.shown_values import listed

__all__ = [
    "by_id",
    "check_readable",
    "check_utf8",
    "example_reader",
    "fields_of",
    "gather_labels",
    "has_rows",
    "load_json_text",
    "raw_examples",
    "read_entries",
    "read_json_elements",
    "read_json_texts",
    "read_json_values",
    "read_labels",
    "read_lines",
    "read_text",
    "read_text_rows",
    "row_reader",
    "unreadable",
]

_UNREADABLE = "an example that cannot be read"
_MAX_SKIPPED_NAMED = 20
_MAX_LABELS_NAMED = 20
_FREQUENT = 20  # Beside a label with so many examples, one with a single example stands out.
_ROWS = (".json", ".jsonl", ".ndjson", ".jsonlines", ".parquet", ".arrow", ".feather")


def by_id(examples):
    """Examples by `example_id`, in order: dict.

    Raises:
        ValueError: if two have the same id: in predictions and metrics, one would hide the other.
    """
    return {example.example_id: example for example in with_ids_of_their_own(examples)}


def with_ids_of_their_own(examples):
    """Iterates over examples and checks that their `example_id`s are unique.

    Raises:
        ValueError: at the second example with the same id.
    """
    seen = set()
    for example in examples:
        if example.example_id in seen:
            raise ValueError(f"There are two examples with the id {example.example_id!r}.")
        seen.add(example.example_id)
        yield example


def unreadable(problem):
    """The placeholder for an example that cannot be read: JSON-serializable dict."""
    return {_UNREADABLE: problem}


def check_readable(raw):
    """Raises a ValueError that describes the problem, for a placeholder from `unreadable`."""
    if isinstance(raw, dict) and _UNREADABLE in raw:
        raise ValueError(str(raw[_UNREADABLE]))


def example_reader(read, parse, *, noun="examples"):
    """Makes a function that reads the examples of a task's raw files.

    Args:
        read: function from a path to an iterable of (place such as "line 3", raw example).
        parse: function from a raw example to an example; raises ValueError for a malformed one.
        noun: str. The name of the examples in messages.

    Returns:
        A generator function `read_examples`; see its docstring.

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
        """Yields the usable examples, one at a time, and warns about the others.

        Args:
            path: str.
            check: function that raises a ValueError for an example that cannot be used.

        Raises:
            ValueError: if no example can be used; names the file, the first example, and its
                problem.
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
        name: str. The file may also be one JSON object with the examples in an array of this
            name. None: it may not.

    Raises:
        As `read_json_values`; also a ValueError if the file is a single object of several lines
        without such an array. A single object on one line is an example.

    >>> from etcmodel.preprocessing import raw_files
    >>> next(raw_files.read_json_elements("reviews.csv"))
    ('line 2', {'text': 'A good book.', 'label': 'pos'})
    """
    return ((row.place, _value(row)) for row in opener.read_rows(path, member=name))


def read_json_values(path):
    """Streams the values of a file, one per example, without loading the whole file.

    Args:
        path: str. A JSON array, on one line or many; JSON objects, one per line (JSON lines) or one
            after another; Parquet or Arrow; see `opener.read_rows`.

    Yields:
        The elements of the array, the objects, or the rows as dicts. For one that cannot be read,
        such as a truncated line, a placeholder that `check_readable` rejects.

    Raises:
        ValueError: if the file has none of these formats; names the file and the place.
        OSError: naming the file, if it cannot be read.

    >>> from etcmodel.preprocessing import raw_files
    >>> next(raw_files.read_json_values("reviews.csv"))
    {'text': 'A good book.', 'label': 'pos'}
    """
    return map(_value, opener.read_rows(path))


def read_json_texts(path):
    """Like `read_json_values`, but unparsed: yields (place, str for `load_json_text`)."""
    for row in opener.read_rows(path, is_parsed=False):
        value = _value(row)
        yield row.place, value if isinstance(value, str) else json.dumps(value)


def load_json_text(text):
    """Parses a str from `read_json_texts`.

    Raises:
        ValueError: with the problem, if it is not UTF-8, not JSON, or could not be read.
    """
    value = opener.load_json_line(text)
    check_readable(value)
    return value


def _value(row):
    return unreadable(row.problem) if row.problem else row.value


def has_rows(path):
    """Whether a file's name says that it is JSON, Parquet or Arrow, packed or not."""
    return os.path.splitext(opener.unpacked_name(os.fspath(path)))[1].lower() in _ROWS


def read_text_rows(path, table=None, tells=True):
    """Streams the texts of a file or folder, unchanged.

    Args:
        path: str. A file that `opener.read_rows` accepts, including tables, or a folder of `.txt`
            files.
        table: `opener.Table`. None: detected from the table's header and file name.
        tells: bool. Whether to warn about skipped contents and the like.

    Yields:
        dict of str: `place` (such as "line 3"), `id` (for an example without its own id) and
        `fields`, a dict; for a folder, `text` and `label` instead of `fields`, where the label is
        the name of the text's subfolder, or None. For something unreadable, `place` and `problem`.

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
    """The fields of an example: dict.

    Args:
        row: dict of `read_text_rows`.
        **names: str. The field names for the `text` and the `label` of a file in a folder.
    Raises:
        ValueError: if the row has a problem instead.
    """
    if "problem" in row:
        raise ValueError(row["problem"])
    return row["fields"] if "fields" in row else {name: row[x] for x, name in names.items()}


def row_reader(parse, table=None, *, read=read_text_rows, noun="examples"):
    """Makes the function that reads the examples of a file or folder: see `example_reader`.

    Args:
        parse: function from a dict of `read` to an example.
        table: as in `read_text_rows`.
        read: function from a path to the rows: dicts with a `place`.
        noun: as in `example_reader`.
    """
    if table is not None:
        read = functools.partial(read, table=table)
    return example_reader(lambda path: ((x["place"], x) for x in read(path)), parse, noun=noun)


def raw_examples(rows, fields_of):
    """Iterates over (place, raw example) of rows, for a predictor's `read_rows`.

    Args:
        rows: iterable of dicts with a `place`.
        fields_of: function from a row to a raw example. For a row that it rejects, with a
            ValueError, there is a placeholder.
    """
    for row in rows:
        try:
            raw = fields_of(row)
        except ValueError as error:
            raw = unreadable(str(error))
        yield row["place"], raw


def gather_labels(input_pattern, read, labels_of, noun):
    """The labels in raw files: a set of str. Logs them with how often they are there.

    A label that is there once, beside frequent ones, is warned of: it may be a mistake, and an
    output of the model all the same.

    Args:
        input_pattern: str. A file, or a pattern for several.
        read: as in `row_reader`.
        labels_of: function from a row to an iterable of its labels.
        noun: str, such as "a label".
    Raises:
        ValueError: if there are none; names the first example and its problem.
    """
    from etcmodel.preprocessing import input_files  # Imports TensorFlow, which takes seconds.

    found, first = collections.Counter(), ""
    for path in input_files(input_pattern):
        for row in read(path):
            try:
                found.update(labels_of(row))
            except ValueError as error:  # Preprocessing counts and reports it.
                first = first or f", the first: {path}: {row['place']}: {error}"
    if not found:
        raise ValueError(f"{input_pattern}: no example has {noun}{first}")
    _tell_labels(input_pattern, found, noun)
    return set(found)


def _tell_labels(input_pattern, found, noun):
    """Logs how often each label was found, and warns of those that may be mistakes."""
    ranked = found.most_common()
    names = f"{noun.removeprefix('a ').removesuffix('s')}s"
    counts = [f"{label} {count}" for label, count in ranked[:_MAX_LABELS_NAMED]]
    more = len(ranked) - len(counts)
    also = f" and {more} more" if more else ""
    logging.info("%s: %d %s: %s%s", input_pattern, len(ranked), names, ", ".join(counts), also)
    single = sorted(repr(label) for label, count in ranked if count == 1)
    if single and ranked[0][1] >= _FREQUENT:
        logging.warning(
            "%s: found only once: %s. If that is a mistake, correct it, or give the right %s as "
            "--labels: what has others is then not learned.",
            input_pattern,
            listed(single),
            names,
        )


def read_labels(path):
    """Reads labels from a file: tuple of str.

    Args:
        path: str. A text file with one label per line; or, if it ends in `.json`, an object with a
            list `labels`, such as the settings beside records.
    Raises:
        ValueError: naming the file, if it contains no labels.

    >>> from etcmodel.preprocessing import raw_files
    >>> with open("labels.txt", "w") as file:
    ...     _ = file.write("neg\\npos\\n")
    >>> raw_files.read_labels("labels.txt")
    ('neg', 'pos')
    """
    if path.lower().endswith(".json"):
        labels = bounded_json.read_object(path, "Preprocess again.").get("labels")
    else:
        labels = read_entries(path)
    if not labels or not is_list_of(labels, str):
        raise ValueError(f"{path}: there must be labels. Received: {labels}")
    return tuple(labels)
