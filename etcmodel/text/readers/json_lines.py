"""Files of examples in the form that `readers.read` takes."""

import os

from etcmodel import bounded_json, opener

__all__ = ["read_json_lines"]


def read_json_lines(path):
    """Reads a file of JSON lines, or of another layout that `opener.read_rows` takes.

    Args:
        path: str. JSON lines, a JSON array, a table with a header, Parquet or Arrow; packed or not;
            local or remote (`gs://…`).
    Yields:
        (str, dict): "path, line 3" for errors, and the object of that line.
    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming file and line, if a line is no JSON object or beyond the bounds of
            `bounded_json`, or the file is broken.
    """
    path = os.fspath(path)
    for row in opener.read_rows(path, is_parsed=False, table=opener.Table()):
        where = f"{path}, {row.place}"
        if row.problem:
            raise ValueError(f"{where}: {row.problem}")
        if isinstance(row.value, dict):
            yield where, row.value
        else:
            text = row.value.strip().encode("utf-8", "surrogateescape")
            yield where, bounded_json.load_object(text, where)
