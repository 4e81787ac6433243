"""Reads files of examples in the form that `readers.read` takes."""

import os

from etcmodel import bounded_json, opener

__all__ = ["read_json_lines"]


def read_json_lines(path):
    """Reads a file of JSON lines, or of another layout that `opener.read_rows` takes; or a folder.

    Args:
        path: str. JSON lines, a JSON array, a table with a header, Parquet or Arrow; compressed or
            not; local or remote (`gs://…`). Or a folder of `.txt` files.
    Yields:
        (str, dict): "path, line 3" for errors, and the object of that line. For a file in a folder
        its `text`, its name as `id`, and for one in a subfolder that one's name as `label`.
    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming file and line, if a line is not a JSON object or exceeds the limits of
            `bounded_json`, or the file is damaged.

    >>> from etcmodel.text import readers
    >>> next(readers.read_json_lines("reviews.csv"))
    ('reviews.csv, line 2', {'text': 'A good book.', 'label': 'pos'})
    """
    path = os.fspath(path)
    if opener.is_folder(path):
        for name, text, label, problem in opener.read_folder(path):
            where = os.path.join(path, name)
            if problem:
                raise ValueError(f"{where}: {problem}")
            yield where, {"id": name, "text": text, **({} if label is None else {"label": label})}
        return
    for row in opener.read_rows(path, is_parsed=False, table=opener.Table()):
        where = f"{path}, {row.place}"
        if row.problem:
            raise ValueError(f"{where}: {row.problem}")
        if isinstance(row.value, dict):
            yield where, row.value
        else:
            text = row.value.strip().encode("utf-8", "surrogateescape")
            yield where, bounded_json.load_object(text, where)
