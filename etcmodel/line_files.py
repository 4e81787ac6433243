"""Streams the lines of foreign files, packed or not, local or remote, within bounds of length.

No TensorFlow is needed for local files.
"""

import contextlib
import gzip
import re
import zlib

from etcmodel import bounded_json, file_systems

__all__ = ["BLOCK", "BROKEN_GZIP", "naming", "open_bytes", "read_lines"]

BLOCK = 1 << 20  # Bytes that are read at once.
BROKEN_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)

_NO_SPACE = re.compile(rb"\S")


def open_bytes(path, wrap=None):
    """The bytes of a file, unpacked where its name ends in `.gz`; the caller closes it.

    Args:
        path: str. Local or remote (`gs://…`).
        wrap: function of the file, not yet unpacked, to what is read in its place; or None.
    """
    is_remote = "://" in str(path)
    file = file_systems.gfile().GFile(path, "rb") if is_remote else open(path, "rb")  # noqa: SIM115
    file = file if wrap is None else wrap(file)
    return gzip.open(file) if str(path).endswith(".gz") else file


def read_lines(path, *, keep_blank=False, wrap=None):
    """Streams the lines of a file, and holds no more than one of them.

    Args:
        path, wrap: as in `open_bytes`.
        keep_blank: bool. Also yield lines of white space, and lines of any length whole.

    Yields:
        (line number from 1, bytes). Of a line longer than `bounded_json.MAX_BYTES` it is the
        beginning, which is too long, too.

    Raises:
        ValueError: if a compressed file is broken; names the file and the place.
        OSError: naming the file, if it cannot be read.
    """
    number = 0
    try:
        with naming(path), contextlib.closing(open_bytes(path, wrap)) as file:
            for number, line in enumerate(file, 1) if keep_blank else _full_lines(file):
                yield number, line
    except BROKEN_GZIP as error:
        raise ValueError(f"{path}: broken gzip file after line {number}: {error}") from error


@contextlib.contextmanager
def naming(path):
    """Names the file in errors of the system, which do not while a file is read."""
    try:
        yield
    except gzip.BadGzipFile:
        raise
    except OSError as error:
        if error.filename or not error.strerror:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _full_lines(file):
    """Yields (number, line) of the lines that are not white space alone, cut off where too long."""
    number, parts, size = 1, [], 0
    while block := file.read(BLOCK):
        position = 0
        while position < len(block):
            if not parts:
                found = _NO_SPACE.search(block, position)
                first = found.start() if found else len(block)
                number += block.count(b"\n", position, first)
                if not found:
                    break
                position = max(position, block.rfind(b"\n", 0, first) + 1)
            end = block.find(b"\n", position) + 1
            part = block[position : end or len(block)]
            size += len(part)
            if size - len(part) <= bounded_json.MAX_BYTES:
                parts.append(part)
            position += len(part)
            if end:
                yield number, b"".join(parts)
                number, parts, size = number + 1, [], 0
    if parts:
        yield number, b"".join(parts)
