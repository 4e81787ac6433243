"""Opens users' files of any layout, detected by content; names are only hints.

It reads prose, lines, JSON arrays and JSON lines, tables with a header, Parquet and Arrow, and
folders of texts; local or remote; compressed or not; with or without UTF-8's byte order mark. Only
one line, one value or one batch of rows is in memory at a time. Skipped content is reported.

TensorFlow is not needed for local files.
"""

import bz2
import contextlib
import contextvars
import csv
import dataclasses
import gzip
import io
import itertools
import json
import logging
import lzma
import os
import re
import zlib
from typing import NamedTuple

from etcmodel import bounded_json, extras, file_systems, json_stream

BLOCK = json_stream.BLOCK  # Bytes that are read at once.

_BUFFER = 1 << 16
_HEAD = 512  # Bytes by which a file is recognized; a tar archive's mark is at byte 257.
_BOM = "\ufeff"
_NO_SPACE = re.compile(rb"\S")
_INNER_BYTES = re.compile(rb"[\x80-\xbf]")  # Of a character of UTF-8.


# Bytes: counted, decompressed, and recognized by their beginning.

_meter = contextvars.ContextVar("etcmodel_reading_meter", default=None)


class ReadingMeter:
    """Counts the bytes read in its context, to estimate the remaining time.

    Args:
        total: int. Bytes of all files, as stored.
    """

    def __init__(self, total):
        self.total, self.read = total, 0

    @contextlib.contextmanager
    def active(self):
        """Context manager in which this meter counts."""
        token = _meter.set(self)
        try:
            yield self
        finally:
            _meter.reset(token)

    def seconds_left(self, seconds):
        """Estimates the remaining seconds from the seconds so far; None while it is unknown."""
        if not self.read:
            return None
        return max(0.0, seconds * (self.total / self.read - 1))


class _Source(io.RawIOBase):
    """A file as stored, local or remote, whose bytes are counted on reading."""

    def __init__(self, path, meter):
        is_remote = "://" in str(path)
        self._file = file_systems.gfile().GFile(path, "rb") if is_remote else io.FileIO(path)
        self._meter, self._is_seekable = meter, is_remote or self._file.seekable()

    def readable(self):
        return True

    def seekable(self):
        return self._is_seekable

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._count(len(data))
        return len(data)

    def seek(self, offset, whence=io.SEEK_SET):
        before = self.tell()
        self._file.seek(offset, whence)
        self._count(self.tell() - before)
        return self.tell()

    def tell(self):
        return self._file.tell()

    def close(self):
        self._file.close()
        super().close()

    def _count(self, num_bytes):
        if self._meter is not None:
            self._meter.read += num_bytes


class BrokenFileError(ValueError):
    """A file of a binary format that is truncated or damaged.

    Args:
        format_name: str, such as "gzip".
        problem: str or exception.
    """

    def __init__(self, format_name, problem):
        super().__init__(f"broken {format_name} file: {_one_line(problem)}")
        self._parts = format_name, _one_line(problem)

    def after(self, place):
        """The message with the last position (str) that could be read."""
        return "broken {0} file after {2}: {1}".format(*self._parts, place)


def _one_line(problem):
    return str(problem).partition("\n")[0]


class _Zstd:
    """Decompresses a zstd file of one or many frames, with the standard library's interface.

    It is fed in small pieces: 256 bytes may stand for 8 MB.
    """

    def __init__(self, file):
        with extras.needed("zstd", "This file is packed by zstd."):
            import zstandard
        self._file, self._rest, self._unpacked, self._frame = file, b"", io.BytesIO(), None
        self._begin = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj
        self._error = zstandard.ZstdError

    def read(self, size):
        while not (found := self._unpacked.read(size)):
            packed = self._rest or self._file.read(256)
            if not packed:
                if self._frame is not None:
                    raise EOFError("it ends within a frame")
                return b""
            self._frame = self._frame or self._begin()
            try:
                self._unpacked, self._rest = io.BytesIO(self._frame.decompress(packed)), b""
            except self._error as error:
                raise BrokenFileError("zstd", error) from error
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        return found


# By the beginning of a compressed file: the format's name, and what decompresses it.
_PACKINGS = (
    (re.compile(rb"\x1f\x8b"), "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), "bzip2", bz2.BZ2File),
    (re.compile(rb"\xfd7zXZ\x00"), "xz", lzma.LZMAFile),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "zstd", _Zstd),
)
_PACKED_ENDING = re.compile(r"(\.(gz|bz2|xz|zstd?))+$", re.IGNORECASE)


class _Unpacked(io.RawIOBase):
    """The content of a compressed file; `BrokenFileError` if it cannot be read to its end."""

    def __init__(self, file, packing, unpack):
        self._file, self._packing = file, packing
        self._inner = unpack(file)

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            data = self._inner.read(len(buffer))
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # It is the file system's, not about the content.
            raise BrokenFileError(self._packing, error) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        self._file.close()
        super().close()


# The beginnings of files that are not text, what they are, and what helps. Letters alone are not
# enough: prose may begin with them.
_BINARY = rb"(?s:.{0,7})[\0-\x08\x0e-\x1f]"
_NO_TEXT = (
    (rb"PK\x03\x04", "a ZIP archive or a spreadsheet", "unpack it, or save it as CSV in UTF-8"),
    (rb"%PDF-", "a PDF file", "extract its text first"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (rb"\x04\x22\x4d\x18", "packed by lz4", "unpack it first"),
    (rb"\x89HDF", "an HDF5 file", "write it as JSON lines first"),
    (rb"SQLite format 3\0", "an SQLite database", "write it as JSON lines first"),
    (rb"(?s:.{257})ustar(?:\0|  \0)", "a tar archive", "unpack it first"),
    (_PARQUET := rb"PAR1" + _BINARY, "a Parquet file", "text is needed here"),
    (_ARROW := rb"ARROW1\0\0|\xff\xff\xff\xff", "an Arrow file", "text is needed here"),
    (rb"FEA1" + _BINARY, "a Feather file of version 1", "write it as Parquet"),
    (rb"PARE" + _BINARY, "an encrypted Parquet file", "decrypt it first"),
)


def _opened(path, is_metered=True):
    """The bytes of a file, decompressed: a buffered binary file, which the caller closes."""
    file = io.BufferedReader(_Source(path, _meter.get() if is_metered else None), _BUFFER)
    try:
        head, file = _with_head(file)
        for magic, packing, unpack in _PACKINGS:
            if magic.match(head):
                file = io.BufferedReader(_Unpacked(file, packing, unpack), _BUFFER)
                return _with_head(file)[1]
    except BaseException:
        file.close()
        raise
    return file


def _with_head(file):
    """The beginning of a buffered file, and the file, whose `peek` shows as much: `_HEAD` bytes."""
    head = file.peek(_HEAD)
    if len(head) >= _HEAD or file.seekable():
        return head, file
    head = file.read(_HEAD)  # A pipe or a decompressor may first return few bytes.
    return head, io.BufferedReader(_Rewound(head, file), _BUFFER)


class _Rewound(io.RawIOBase):
    """A file whose beginning has been read already."""

    def __init__(self, start, file):
        self._start, self._file = io.BytesIO(start), file

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._start.readinto(buffer) or self._file.readinto(buffer)

    def close(self):
        self._file.close()
        super().close()


def _as_text(file):
    """A file of `_opened` after its byte order mark; ValueError if it is not text."""
    head = file.peek(_HEAD)
    for magic, what, advice in _NO_TEXT:
        if re.match(magic, head):
            raise ValueError(f"this is {what}: {advice}")
    for magic, packing, _ in _PACKINGS:
        if magic.match(head):
            raise ValueError(f"it is packed twice, the second time by {packing}: unpack it first")
    bounded_json.check_encoding(head)
    if head.startswith(_BOM.encode()):
        file.read(len(_BOM.encode()))
    return file


def open_bytes(path, *, is_metered=True):
    """Opens the bytes of a text, decompressed and without byte order mark; the caller closes it.

    Args:
        path: str. Local or remote (`gs://…`).
        is_metered: bool. Whether an active `ReadingMeter` counts what is read.
    Raises:
        ValueError: saying what the file is, if it is not text in UTF-8, or is damaged.
        OSError: if it cannot be read.
    """
    file = _opened(path, is_metered)
    try:
        return _as_text(file)
    except BaseException:
        file.close()
        raise


# Errors, which name the file.


def _naming_rows(path, rows):
    """Yields the rows; errors name the file, and for a damaged one the last row that was read."""
    last = Row("line", 0, None)
    try:
        with _naming(path), contextlib.closing(rows):
            for row in rows:
                yield row
                last = row
    except json_stream.JsonPlaceError as error:
        raise ValueError(f"{path}: {_placed(path, error)}") from error
    except BrokenFileError as error:
        raise ValueError(f"{path}: {error.after(last.place)}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


@contextlib.contextmanager
def _naming(path):
    """Names the file in system errors, and if a package is needed to read it."""
    try:
        with file_systems.naming(path):
            yield
    except extras.MissingExtraError as error:
        raise extras.MissingExtraError(f"{path}: {error}", name=error.name) from error


def _placed(path, error):
    """The message of a `JsonPlaceError` with line and column, both from 1."""
    line, column, left = 1, 1, error.offset
    with contextlib.closing(open_bytes(path, is_metered=False)) as file:
        while left and (block := file.read(min(BLOCK, left))):
            left -= len(block)
            if num_ends := block.count(b"\n"):
                line, column = line + num_ends, 1
            column += len(_INNER_BYTES.sub(b"", block[block.rfind(b"\n") + 1 :]))
    if str(error) == json_stream.NO_UTF8:
        return f"line {line}: {error} at character {column}{error.advice}"
    return f"malformed JSON at line {line}, column {column}: {error}"


# Lines and whole texts.


def read_lines(path, *, keep_blank=False):
    """Streams the lines of a text, with only one of them in memory.

    Args:
        path: str. Compressed or not, local or remote.
        keep_blank: bool. Whether to yield lines of white space, too, and lines of any length whole.

    Yields:
        (line number from 1, str). Bytes that are not UTF-8 are surrogate code points: see
        `check_utf8`. A line longer than `bounded_json.MAX_BYTES` is cut to its beginning, which is
        also too long.

    Raises:
        ValueError: naming the file, if it is not text, or is damaged, then with the position.
        OSError: naming the file, if it cannot be read.
    """

    def rows():
        with contextlib.closing(open_bytes(path)) as file:
            yield from _lines(file, keep_blank)

    return ((row.number, row.value) for row in _naming_rows(path, rows()))


def read_entries(path):
    """Reads the lines of a list, without white space around them: list of str.

    Raises:
        ValueError: naming the file and the line, if one is not UTF-8.
    """
    entries = []
    for number, line in read_lines(path):
        try:
            check_utf8(line)
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}") from error
        entries.append(line.strip())
    return entries


def read_text(path, *, is_metered=True):
    """Reads the text of a whole file.

    Args:
        path, is_metered: as in `open_bytes`.
    Raises:
        ValueError: saying what is wrong, if it is too long, or not UTF-8, or damaged.
        OSError: naming the file, if it cannot be read.
    """
    with _naming(path), contextlib.closing(open_bytes(path, is_metered=is_metered)) as file:
        content = file.read(bounded_json.MAX_BYTES + 1)
    if problem := bounded_json.problem_of_size(len(content)):
        raise ValueError(problem)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        advice = bounded_json.advice_on_encoding(content.decode("utf-8", "surrogateescape"))
        raise ValueError(f"invalid UTF-8 at byte {error.start + 1}{advice}") from error


def check_utf8(line):
    """Raises ValueError, with the position, if a line of `read_lines` was not UTF-8."""
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        advice = bounded_json.advice_on_encoding(line)
        raise ValueError(f"invalid UTF-8 at character {error.start + 1}{advice}") from error


def load_json_line(line):
    """Parses the JSON value of a line of `read_lines`.

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


def _lines(file, keep_blank, unit="line"):
    """Yields `Row`s of a file's lines."""
    for number, line in enumerate(file, 1) if keep_blank else _full_lines(file):
        yield Row(unit, number, line.decode("utf-8", "surrogateescape"))


def _full_lines(file):
    """Yields (number, line) of lines that are not only white space, cut off if too long."""
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


# Rows: the content of a file, whatever its layout.


class Row(NamedTuple):
    """One example of a file.

    Attributes:
        unit: str. What is counted: "element", "line" or "row"; `PROSE` for a text without layout.
        number: int. Its number: elements count from 0, others from 1.
        value: the content: for JSON any value, for tables and columns a dict, for prose a line.
        problem: str. Why it cannot be read; '' for nothing.
    """

    unit: str
    number: int
    value: object
    problem: str = ""

    @property
    def place(self):
        """str, such as "line 3"."""
        return f"{self.unit} {self.number}"


PROSE = "line of text"

_ARRAY, _LINES, _VALUES, _MEMBER, _TABLE = "array", "lines", "values", "member", "table"
_LINE_ENDINGS = (".jsonl", ".ndjson", ".jsonlines")
_JSON_ENDINGS = (".json", *_LINE_ENDINGS)
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_FULL_LINE = re.compile(rb"\S[^\n]*")
_TWO_LINES = re.compile(rb"(?:\s*\S[^\n]*\n){2}")
_JSON_IN_TABLE = re.compile(rb'\{\s*(?:["}]|$)|\[\s*(?:[\[{"\]]|$)')  # Not a column `[id]`.
_JSON_IN_PROSE = re.compile(rb'\{\s*"|\[\s*\{\s*(?:"|\Z)')
_GOES_ON = re.compile(rb'[^\n]*(?:\{\s*\n["}]|[\[,:]\s*\n)')  # An object, in the second line.
_QUOTED = re.compile(rb'"[^"]*"')  # A cell, which may have line ends of its own.
_MAYBE_SEVERAL = re.compile(r"\}\s*\{")  # Objects of one line; or it is within a string.
_ROWS_PER_BATCH = 64


@dataclasses.dataclass(frozen=True)
class Table:
    """The format of a table.

    Attributes:
        delimiter: str. Separates cells. None: tab, comma or semicolon, whichever the header has,
            preferring that of the file's suffix.
        quoting: bool. Whether cells may be in double quotes. None: not if tabs separate them.
    """

    delimiter: str | None = None
    quoting: bool | None = None

    def __post_init__(self):
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            raise ValueError(
                "`delimiter` must be one character that is no quote and ends no line, or \\t. "
                f"Received: {self.delimiter!r}"
            )

    def completed(self, header, ending):
        """Returns the format with all fields set, for a table that begins with `header` (bytes)."""
        likely = [_DELIMITERS.get(ending, "\t"), "\t", ",", ";"]
        found = [x for x in likely if x.encode() in header]
        delimiter = self.delimiter or (found or likely)[0]
        return Table(delimiter, delimiter != "\t" if self.quoting is None else self.quoting)


def read_rows(path, *, member=None, is_parsed=True, table=None, may_be_prose=False, tells=True):
    """Streams a file's examples one after the other, whatever its layout.

    Layouts are a JSON array; JSON objects, one per line or consecutive; a table whose name ends in
    `.csv`, `.tsv` or `.tab`, or any name if `table` is given; Parquet or Arrow. A line that is not
    JSON among JSON lines is a problem of that line alone.

    Args:
        path: str. Compressed or not, local or remote.
        member: str. One JSON object may contain all examples, in the array of this name.
        is_parsed: bool. Whether JSON values are parsed; else they are str that `load_json_line`
            takes.
        table: `Table`. Any file may be a table of this format.
        may_be_prose: bool. Whether files without another layout are prose, all of whose lines are
            yielded.
        tells: bool. Whether to warn if something else may have been meant.

    Yields:
        `Row`s.

    Raises:
        ValueError: naming the file, and the position, if it is damaged, or none of these.
        MissingExtraError: naming file and package, if it needs a package that is not installed.
        OSError: naming the file, if it cannot be read.
    """

    def rows():
        with contextlib.closing(_opened(path)) as file:
            head = file.peek(_HEAD)
            if (is_parquet := bool(re.match(_PARQUET, head))) or re.match(_ARROW, head):
                yield from _column_rows(file, is_parquet)
                return
            lines, file = _looked_ahead(_as_text(file))
            layout = _layout(lines, _ending(path), member, table, may_be_prose)
            if layout == _TABLE:
                form = (table or Table()).completed(lines[0] if lines else b"", _ending(path))
                _check_line_ends(lines, form)
                yield from _table_rows(path, file, form, tells)
            elif layout == _LINES:
                yield from _json_lines(file, is_parsed)
            elif layout == PROSE:
                yield from _lines(file, keep_blank=True, unit=PROSE)
            else:
                name = member if layout == _MEMBER else None
                for index, (value, problem) in enumerate(json_stream.read(file, name, is_parsed)):
                    yield Row("element", index, value, problem)

    return _naming_rows(path, rows())


def _ending(path):
    """The suffix of a file's name in lower case, without that of its compression: str."""
    return os.path.splitext(unpacked_name(path))[1].lower()


def unpacked_name(path):
    """Returns a file's name without its folder and without its compression's suffix: str."""
    return _PACKED_ENDING.sub("", os.path.basename(str(path)))


def _looked_ahead(file):
    """The first lines that are not blank, at least two if possible, and the file rewound."""
    start, is_enough = bytearray(), False
    while not is_enough and (block := file.read(BLOCK)):
        start += block
        is_enough = len(start) > bounded_json.MAX_BYTES or (
            b"\n" in block and bool(_TWO_LINES.match(start))
        )
    lines = _FULL_LINE.findall(bytes(start))
    return lines, io.BufferedReader(_Rewound(bytes(start), file), _BUFFER)


def _layout(lines, ending, member, table, may_be_prose):
    """A text's layout, by its first lines (bytes, none blank), else by its name's suffix."""
    first = lines[0] if lines else b""
    is_json, is_table = ending in _JSON_ENDINGS, ending in _DELIMITERS
    if may_be_prose and not (is_json or is_table or _JSON_IN_PROSE.match(b"\n".join(lines[:2]))):
        is_said = table is not None and table.delimiter and table.delimiter.encode() in first
        return _TABLE if is_said else PROSE
    if not is_table or _JSON_IN_TABLE.match(first):
        if first.startswith(b"["):
            is_line = len(lines) > 1 and _json_value(first) is not None
            return _LINES if ending in _LINE_ENDINGS and is_line else _ARRAY
        if first.startswith(b"{"):
            return _layout_of_objects(lines, ending, member)
    if is_table:
        return _TABLE
    if not lines or ending in _LINE_ENDINGS or may_be_prose or any(map(_object_of, lines)):
        return _LINES
    if table and not is_json and table.completed(first, "").delimiter.encode() in first:
        return _TABLE
    or_table = ", or a table whose first line names its columns" if table else ""
    raise ValueError(
        f"expected a JSON array or JSON objects{or_table}, found the character {chr(first[0])!r}"
    )


def _layout_of_objects(lines, ending, member):
    """The same for a text that begins with a brace: damage does not hide intact parts."""
    line = _object_of(lines[0])
    # Two objects in two lines are enough.
    is_enough = line and all(map(_object_of, lines[1:2]))
    whole = [] if is_enough else [*_whole_objects(lines)]
    if member is not None:
        first = line or next((value for value, _ in whole), {})
        begins_so = re.match(rb"\{\s*%b\s*:" % re.escape(json.dumps(member).encode()), lines[0])
        if begins_so or isinstance(first.get(member), list):
            return _MEMBER
    goes_on = any(has_lines for _, has_lines in whole)
    if not goes_on and (line or _has_line_of_its_own(lines)):
        return _LINES
    if ending in _LINE_ENDINGS and not (goes_on or _GOES_ON.match(b"\n".join(lines[:2]))):
        return _LINES
    return _VALUES if member is None or len(whole) > 1 else _MEMBER


def _has_line_of_its_own(lines):
    """Whether a line is an object that is within no other: there, more would follow it."""
    return any(
        not after.startswith((b",", b"]", b"}")) and _object_of(line)
        for line, after in itertools.pairwise([*lines, b""])
    )


def _json_value(line):
    """The value of a text (str or bytes) if it is JSON by itself, else None."""
    try:
        return bounded_json.loads(line)
    except ValueError:
        return None


def _object_of(line):
    """The JSON object of a line (bytes), else an empty one."""
    value = _json_value(line) if line.startswith(b"{") else None
    return value if isinstance(value, dict) else {}


def _whole_objects(lines):
    """Yields (object, whether it has several lines) of the JSON objects that a text begins with."""
    start = io.BytesIO(b"\n".join(lines)[:BLOCK])
    with contextlib.suppress(ValueError):  # It ends at damage.
        for text, _ in json_stream.read(start, is_parsed=False):
            if text and isinstance(value := _json_value(text), dict):
                yield value, "\n" in text


def _json_lines(file, is_parsed):
    for row in _lines(file, keep_blank=False):
        if is_parsed or _MAYBE_SEVERAL.search(row.value):
            yield from _values_of_line(row, is_parsed)
        else:
            yield row


def _values_of_line(row, is_parsed):
    """Yields the `Row`s of a line: one, or as many as it has JSON objects."""
    try:
        value = load_json_line(row.value)
    except ValueError as error:
        objects = _objects_of(row.value)
        yield from (row._replace(value=x if is_parsed else json.dumps(x)) for x in objects)
        if not objects:
            yield row._replace(value=None, problem=str(error)) if is_parsed else row
    else:
        yield row._replace(value=value) if is_parsed else row


def _objects_of(line):
    """The JSON objects of a line that has several; none if it is anything else."""
    try:
        found = list(json_stream.read(io.BytesIO(line.encode("utf-8", "surrogateescape"))))
    except ValueError:
        return []
    return [value for value, _ in found] if all(isinstance(x, dict) for x, _ in found) else []


# Tables.


def _check_line_ends(lines, form):
    """Raises ValueError if a table's lines seem to end with CR alone, as once on Macs."""
    if len(lines) != 1:
        return
    line = _QUOTED.sub(b'""', lines[0]) if form.quoting else lines[0]
    if b"\r" in line.rstrip():
        raise ValueError(
            "the lines of the table end with CR alone: end them with LF, as `tr '\\r' '\\n'` does"
        )


def _table_rows(path, file, form, tells):
    """Yields the `Row`s of a table except its header; reports possible misunderstandings."""
    rows = (_quoted if form.quoting else _unquoted)(file, form.delimiter)
    header = _header(rows)
    num_rows, odd, first_odd = 0, 0, 0
    for number, cells, problem, is_odd in rows:
        num_rows += 1
        if is_odd:
            odd, first_odd = odd + 1, first_odd or number
        problem = problem or _problem_of(cells, header)
        fields = None if problem else dict(zip(header, cells, strict=True))
        yield Row("line", number, fields, problem)
    if odd and tells:
        found = f"{path}: {odd} of {num_rows} rows, the first in line {first_odd}, have"
        logging.warning(
            "%s a cell of several lines. If a quote was left open there, read with --quoting=false."
            if form.quoting
            else "%s a cell in quotes, which are part of it. If not, read with --quoting=true.",
            found,
        )


def _unquoted(file, delimiter):
    """Yields (line number, cells, problem, whether a cell is in quotes) of each row."""
    for number, line in enumerate(_cut_lines(file), 1):
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if text:
            cells = text.split(delimiter)
            is_odd = '"' in text and any(len(x) > 1 and x[0] == x[-1] == '"' for x in cells)
            yield number, cells, bounded_json.problem_of_size(len(line)), is_odd


def _quoted(file, delimiter):
    """Yields (number of the first line, cells, problem, whether it has several lines), likewise."""
    csv.field_size_limit(bounded_json.MAX_BYTES)  # By default long texts are refused.
    sizes = []

    def lines():
        for line in _cut_lines(file):
            sizes.append(len(line))
            yield line.decode("utf-8", "surrogateescape")

    rows = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        number, cells, problem = rows.line_num + 1, [], ""
        sizes.clear()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise ValueError(
                    f"line {number}: a quote is opened and never closed, so that the rest of the "
                    "file cannot be read. Double the quotes within quoted cells, or read with "
                    "--quoting=false."
                ) from error
            problem = f"malformed table: {error}"
        problem = problem or next(filter(None, map(bounded_json.problem_of_size, sizes)), "")
        if cells or problem:
            yield number, cells, problem, len(sizes) > 1


def _cut_lines(file):
    """Yields the lines of a file, cut off if too long."""
    while line := file.readline(bounded_json.MAX_BYTES + 1):
        yield line
        while len(line) >= BLOCK and not line.endswith(b"\n"):
            line = file.readline(BLOCK)


def _header(rows):
    try:
        _, header, problem, _ = next(rows, (0, [], "", False))
        if problem := problem or _problem_of(header, header):
            raise ValueError(problem)
    except ValueError as error:
        raise ValueError(f"the header cannot be read: {error}") from error
    if not header or len(set(header)) < len(header):
        raise ValueError(f"the first line must name the columns, each once. Received: {header}")
    return header


def _problem_of(cells, header):
    if len(cells) != len(header):
        return f"the row has {len(cells)} columns, the header {len(header)}"
    try:
        check_utf8("".join(cells))
    except ValueError as error:
        return str(error)
    return ""


# Columns: Parquet and Arrow.


def _column_rows(file, is_parquet):
    name = "Parquet" if is_parquet else "Arrow"
    with extras.needed("parquet", f"This is a file of {name}."):
        import pyarrow
        import pyarrow.parquet
    number = 0
    try:
        for batch in _batches(file, is_parquet):
            for value, problem in _values_of_batch(batch):
                number += 1
                yield Row("row", number, value, problem)
    except (pyarrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"broken {name} file after row {number}: {_one_line(error)}") from error


def _batches(file, is_parquet):
    """Yields record batches of few rows."""
    import pyarrow
    import pyarrow.parquet

    is_stream = not is_parquet and not file.peek(_HEAD).startswith(b"ARROW1")
    if not is_stream and not file.seekable():
        raise ValueError("a packed file of Parquet or Arrow cannot be read: unpack it first")
    if is_parquet:
        opened = pyarrow.parquet.ParquetFile(file)
        schema, batches = opened.schema_arrow, opened.iter_batches(batch_size=_ROWS_PER_BATCH)
    elif is_stream:
        batches = pyarrow.ipc.open_stream(file)
        schema = batches.schema
    else:
        opened = pyarrow.ipc.open_file(file)
        schema = opened.schema
        batches = map(opened.get_batch, range(opened.num_record_batches))
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"the columns must have names of their own. Received: {schema.names}")
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_PER_BATCH):
            yield batch.slice(start, _ROWS_PER_BATCH)


def _values_of_batch(batch):
    """Yields (value, problem) of each row: a value without a Python type costs only its row."""
    import pyarrow

    try:
        values = batch.to_pylist()
        if not all(map(_is_plain, batch.schema.types)):
            values = [json.loads(json.dumps(value, default=_as_json)) for value in values]
    except (ValueError, OverflowError, LookupError, pyarrow.ArrowException) as error:
        if batch.num_rows == 1:
            yield None, f"it cannot be read: {_one_line(error)}"
        else:
            for index in range(batch.num_rows):
                yield from _values_of_batch(batch.slice(index, 1))
    else:
        yield from ((value, "") for value in values)


def _is_plain(kind):
    """Whether the values of a column are JSON types."""
    import pyarrow

    types = pyarrow.types
    if types.is_nested(kind):
        inner = (kind.field(index).type for index in range(kind.num_fields))
        return not types.is_map(kind) and all(map(_is_plain, inner))
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return is_text or is_number or types.is_null(kind)


def _as_json(value):
    """Converts a value that JSON lacks: bytes to their text, others to a readable form."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


# Folders of texts.


def is_folder(path):
    """Returns whether a path is a folder, local or remote."""
    return file_systems.gfile().isdir(path) if "://" in str(path) else os.path.isdir(path)


def is_hidden(name):
    """Returns whether a file or folder is hidden by its file system."""
    return name.startswith(".")


def shown(paths, pattern):
    """Returns the paths that match a pattern; hidden ones only if it names them."""

    def parts_of(path):  # Matches of a relative pattern may begin with "./".
        return path.removeprefix("./").split("/")

    def is_shown(path):
        parts = zip(parts_of(path), parts_of(pattern), strict=False)
        return not any(is_hidden(x) and not is_hidden(y) for x, y in parts)

    return list(filter(is_shown, paths))


def read_folder(folder, tells=True):
    """Reads the `text_files` of a folder.

    Args:
        folder, tells: as in `text_files`.

    Yields:
        (str, str, str, str): path below the folder; text; label, the name of the folder in it that
        contains the text, None for none; and why it cannot be read, '' for nothing.

    Raises:
        OSError: naming the file, if it cannot be read.
    """
    for name in text_files(folder, tells):
        label = name.partition("/")[0] if "/" in name else None
        try:
            yield name, read_text(os.path.join(folder, name)), label, ""
        except ValueError as error:
            yield name, "", label, str(error)


def text_files(folder, tells=True):
    """Yields the `.txt` files of a folder and its subfolders, compressed or not, by name.

    Args:
        folder: str. Local or remote.
        tells: bool. Whether to warn of how many files and folders are skipped.

    Yields:
        str. Path below the folder, with `/` between its parts.
    """
    hidden, others = [], []
    yield from _texts_of(folder, "", (), hidden, others)
    left_out = {"hidden": hidden, "not .txt": others}
    if tells and (hidden or others):
        told = [f"{len(x)} {name} (such as {x[0]})" for name, x in left_out.items() if x]
        logging.warning("%s: left out: %s", folder, ", ".join(told))


def _texts_of(folder, below, above, hidden, others):
    here, is_remote = os.path.join(folder, below), "://" in str(folder)
    names = file_systems.gfile().listdir(here) if is_remote else os.listdir(here)
    above = above if is_remote else (*above, os.path.realpath(here))
    for listed in sorted(names, key=lambda name: name.rstrip("/")):
        name = listed.rstrip("/")
        inner = os.path.join(below, name)
        path = os.path.join(folder, inner)
        is_text = _ending(name) == ".txt"
        # Asking takes a request for each of thousands of texts, if they are remote.
        is_known = is_remote and (is_text or listed != name)
        if is_hidden(name):
            hidden.append(inner)
        elif listed != name if is_known else is_folder(path):
            if is_remote or os.path.realpath(path) not in above:  # Else a link leads back.
                yield from _texts_of(folder, inner, above, hidden, others)
            else:
                others.append(inner)
        elif is_text:
            yield inner
        else:
            others.append(inner)
