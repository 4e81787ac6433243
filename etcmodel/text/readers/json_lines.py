"""JSON lines: one example a line, in the form that `readers.read` takes."""

import os

from etcmodel import bounded_json, line_files

__all__ = ["read_json_lines"]


def read_json_lines(path):
    """Reads a file of JSON lines; blank lines are skipped.

    Args:
        path: str. UTF-8; unpacked on the fly if it ends in `.gz`; local or remote (`gs://…`).
    Yields:
        (str, dict): "path, line 3" for errors, and the object of that line.
    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming file and line, if a line is no JSON object or beyond the bounds of
            `bounded_json`, or a compressed file is broken.
    """
    path = os.fspath(path)
    for number, line in line_files.read_lines(path):
        where = f"{path}, line {number}"
        yield where, bounded_json.load_object(line.strip(), where)
