"""Streams raw texts of JSON lines, of tables with a header, or of a folder of files."""

import csv
import os

import tensorflow as tf

from etcmodel import bounded_json
from etcmodel.preprocessing import raw_files

__all__ = ["example_reader", "fields_of", "read_rows"]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_TEXT_ENDINGS = (".txt", ".txt.gz")


def read_rows(path):
    """Streams the examples of a file or folder, as they stand there.

    Args:
        path: str. A folder; a table if it ends in `.csv` or `.tsv`; else JSON lines. Files may be
            packed (`.gz`), all may be remote (`gs://…`).

    Yields:
        dict of str: `place` (such as "line 3"), `id` (the id of an example without one of its own)
        and `fields`, a dict; of a folder `text` and `label` instead, the latter None for texts
        that lie in the folder itself. Or `place` and `problem`, where something cannot be read.

    Raises:
        ValueError: naming the file, if it is damaged, or a table has no proper header.
    """
    name = os.path.basename(path.rstrip("/"))
    if tf.io.gfile.isdir(path):
        yield from _read_folder(path)
        return
    delimiter = _DELIMITERS.get(os.path.splitext(name.removesuffix(".gz"))[1])
    rows = _read_table(path, delimiter) if delimiter else _read_json_lines(path)
    for number, fields, problem in rows:
        found = {"problem": problem} if problem else {"id": f"{name}:{number}", "fields": fields}
        yield {"place": f"line {number}", **found}


def fields_of(row, **names):
    """The fields of an example, a dict.

    Args:
        row: dict of `read_rows`.
        **names: what fields the `text` and the `label` of a folder's file become: str.
    Raises:
        ValueError: if the row has a problem instead.
    """
    if "problem" in row:
        raise ValueError(row["problem"])
    return row["fields"] if "fields" in row else {name: row[x] for x, name in names.items()}


def example_reader(parse):
    """The function that reads the examples of a file or folder: see `raw_files.example_reader`.

    Args:
        parse: function of a dict of `read_rows` to an example.
    """
    return raw_files.example_reader(
        lambda path: ((row["place"], row) for row in read_rows(path)), parse
    )


def _read_json_lines(path):
    for number, line in raw_files.read_lines(path):
        try:
            yield number, raw_files.load_json_line(line), ""
        except ValueError as error:
            yield number, None, str(error)


def _read_table(path, delimiter):
    """Yields (number of the first line, fields or None, problem) for each row but the header."""
    csv.field_size_limit(bounded_json.MAX_BYTES)  # By default long texts are refused.
    rows = csv.reader(_without_mark(path), delimiter=delimiter, strict=True)
    header = _header(path, rows)
    while True:
        number = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise ValueError(
                    f"{path}: line {number}: a quote is opened and never closed, so that the rest "
                    "of the file cannot be read. Double the quotes within quoted cells."
                ) from error
            yield number, None, f"malformed table: {error}"
            continue
        if row:
            yield number, dict(zip(header, row, strict=False)), _problem_of(row, header)


def _without_mark(path):
    """The lines of a file; a byte order mark would hide the quote of the first cell."""
    for number, line in raw_files.read_lines(path, keep_blank=True):
        yield line.removeprefix("\ufeff") if number == 1 else line


def _header(path, rows):
    try:
        header = next(rows, [])
        if problem := _problem_of(header, header):
            raise ValueError(problem)
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: the header cannot be read: {error}") from error
    if not header or len(set(header)) < len(header):
        raise ValueError(
            f"{path}: the first line must name the columns, each once. Received: {header}"
        )
    return header


def _problem_of(row, header):
    if len(row) != len(header):
        return f"the row has {len(row)} columns, the header {len(header)}"
    try:
        raw_files.check_utf8("".join(row))
    except ValueError as error:
        return str(error)
    return ""


def _read_folder(folder):
    for name in _names(folder):
        path = os.path.join(folder, name)
        if tf.io.gfile.isdir(path):
            for inner in _names(path):
                if inner.endswith(_TEXT_ENDINGS):
                    yield _read_text(os.path.join(path, inner), f"{name}/{inner}", name)
        elif name.endswith(_TEXT_ENDINGS):
            yield _read_text(path, name, None)


def _names(folder):
    return sorted(name.rstrip("/") for name in tf.io.gfile.listdir(folder))


def _read_text(path, place, label):
    try:
        text = raw_files.read_text(path)
    except ValueError as error:
        return {"place": place, "problem": str(error)}
    return {"place": place, "id": place, "text": text, "label": label}
