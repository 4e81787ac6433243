"""Streams the values of a JSON file of any size, with bounded memory.

The file is split into its values by their brackets alone, and each of them is parsed on its own:
one that exceeds the limits of `bounded_json` does not hide those that follow.
"""

import json
import re
from typing import NamedTuple

from etcmodel import bounded_json

BLOCK = 1 << 20  # Bytes that are read at once.
NO_UTF8 = "invalid UTF-8"  # The message of such an error.

_NO_SPACE = re.compile(rb"[^ \t\r\n]")
_BRACKET_OR_QUOTE = re.compile(rb'["\[\]{}]')
# Bounded: each repetition takes memory, and `_pass_string` continues wherever it ends.
_WITHIN_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,1000}', re.DOTALL)
_AFTER_SCALAR = re.compile(rb'[ \t\r\n,"\[\]{}]')
_ANY = re.compile(b".", re.DOTALL)


class JsonPlaceError(ValueError):
    """An error at a position of a file, `offset` (int, in bytes); `advice` may follow it (str)."""

    def __init__(self, message, offset, advice=""):
        super().__init__(message)
        self.offset = offset
        self.advice = advice


def read(file, member=None, is_parsed=True):
    """Streams the elements of a JSON array, or JSON values one after another.

    Args:
        file: binary file, open for reading: an array, or values of which the first is an object.
        member: str. The file is one object, whose array of this name is read; its other members are
            skipped. None: no such object.
        is_parsed: bool. Whether values are parsed; else they are JSON strings, in which bytes that
            are not UTF-8 are surrogate code points.
    Yields:
        (value, problem): a JSON value and '', or None and what is wrong with a value that exceeds
        the limits of depth, size or digits.
    Raises:
        JsonPlaceError: if it is not such JSON in UTF-8.
        ValueError: if it is another kind of file, or the object has no such array.
    """
    scanner = _Scanner(file)
    for token in _values(scanner) if member is None else _members(scanner, member):
        yield _load(token) if is_parsed else _text(token)


def _values(scanner):
    first = scanner.find(_NO_SPACE)
    if first not in (b"[", b"{"):
        found = f"the character {first!r}" if first else "an empty file"
        raise ValueError(f"expected a JSON array or JSON objects, found {found}")
    if first == b"[":
        scanner.position += 1
        tokens = scanner.tokens()
        yield from _until_bracket(tokens, scanner)
        _check_end(tokens)
    for token in scanner.tokens():
        if token.mark:
            raise JsonPlaceError("Expecting value", token.offset)
        yield token


def _members(scanner, name):
    first = scanner.find(_NO_SPACE)
    if first == b"{":
        scanner.position += 1
    if first != b"{" or not _enter_array(scanner, name):
        raise ValueError(f"expected a JSON object with an array `{name}`, found none")
    tokens = scanner.tokens()
    yield from _until_bracket(tokens, scanner)
    if all(token.mark != b"}" for token in tokens):
        raise JsonPlaceError("the file ends within the object", scanner.offset)
    _check_end(tokens)


def _check_end(tokens):
    for token in tokens:
        raise JsonPlaceError("Extra data", token.offset)


def _enter_array(scanner, name):
    """Moves behind the opening bracket of an object's array; False if there is none of the name."""
    wanted = json.dumps(name).encode("utf-8")
    for token in scanner.tokens():
        if token.mark == b"}":
            break
        if scanner.find(_NO_SPACE) != b":":
            continue
        scanner.position += 1
        if token.text == wanted and scanner.find(_NO_SPACE) == b"[":
            scanner.position += 1
            return True
    return False


class _Token(NamedTuple):
    """A value, or a mark outside of values.

    Attributes:
        offset: int. Where it starts.
        mark: bytes. A comma or a closing bracket; b"" for a value.
        text: bytes. The value's text; None if it is too long.
    """

    offset: int
    mark: bytes = b""
    text: bytes | None = b""


def _until_bracket(tokens, scanner):
    """The elements of an array, up to its closing bracket."""
    is_value_next, may_end = True, True
    for token in tokens:
        if token.mark == b"]" and may_end:
            break
        if is_value_next == bool(token.mark) or token.mark not in (b"", b","):
            message = "Expecting value" if is_value_next else "Expecting ',' delimiter"
            raise JsonPlaceError(message, token.offset)
        if is_value_next:
            yield token
        is_value_next = not is_value_next
        may_end = not is_value_next
    else:
        raise JsonPlaceError("the file ends within the array", scanner.offset)


def _load(token):
    if token.text is None:
        return None, bounded_json.TOO_LONG
    try:
        return bounded_json.loads(token.text), ""
    except json.JSONDecodeError as error:
        before = error.doc[: error.pos].encode("utf-8")
        raise JsonPlaceError(error.msg, token.offset + len(before)) from error
    except UnicodeDecodeError as error:
        advice = bounded_json.advice_on_encoding(token.text.decode("utf-8", "surrogateescape"))
        raise JsonPlaceError(NO_UTF8, token.offset + error.start, advice) from error
    except ValueError as error:
        return None, str(error)


def _text(token):
    if token.text is None:
        return None, bounded_json.TOO_LONG
    return token.text.decode("utf-8", "surrogateescape"), ""


class _Scanner:
    """Scans a file, block by block, and keeps the text of a value while scanning it.

    Attributes:
        block: the bytes read last.
        position: int. How many of them were scanned.
    """

    def __init__(self, file):
        self._file = file
        self._block_offset = 0
        self.block, self.position = b"", 0
        # Of the current value: where it starts in the block, and its part in previous blocks.
        self._start, self._parts, self._size = None, [], 0

    @property
    def offset(self):
        """Position in the file: int, in bytes."""
        return self._block_offset + self.position

    def find(self, pattern):
        """Moves to the first byte that matches, and returns it; b"" at the end of the file."""
        while True:
            if match := pattern.search(self.block, self.position):
                self.position = match.start()
                return match[0]
            if not self._read_block():
                return b""

    def tokens(self):
        """Yields `_Token`s to the end of the file."""
        while byte := self.find(_NO_SPACE):
            offset = self.offset
            if byte in b",]}":
                self.position += 1
                yield _Token(offset, mark=byte)
                continue
            self._start = self.position
            if byte in b"[{":
                self._pass_brackets()
            elif byte == b'"':
                self._pass_string()
            else:
                self.find(_AFTER_SCALAR)
            yield _Token(offset, text=self._kept())

    def _pass_brackets(self):
        depth = 0
        while byte := self.find(_BRACKET_OR_QUOTE):
            if byte == b'"':
                self._pass_string()
                continue
            self.position += 1
            depth += 1 if byte in b"[{" else -1
            if not depth:
                return

    def _pass_string(self):
        self.position += 1
        while True:
            self.position = _WITHIN_STRING.match(self.block, self.position).end()
            if self.position == len(self.block):
                if not self._read_block():
                    return
                continue
            self.position += 1
            if self.block[self.position - 1] == ord('"'):
                return
            if self.find(_ANY):  # The block ends with a backslash: what it escapes is in the next.
                self.position += 1

    def _read_block(self):
        self._keep(len(self.block))
        self._block_offset += len(self.block)
        self.block, self.position = self._file.read(BLOCK), 0
        return bool(self.block)

    def _keep(self, end):
        """Keeps a value's part in this block up to `end`, unless it is too long already."""
        if self._start is not None:
            self._size += end - self._start
            if bounded_json.problem_of_size(self._size):
                self._parts.clear()
            else:
                self._parts.append(self.block[self._start : end])
            self._start = 0

    def _kept(self):
        """The value that ends here; None if it is too long."""
        self._keep(self.position)
        text = None if bounded_json.problem_of_size(self._size) else b"".join(self._parts)
        self._start, self._parts, self._size = None, [], 0
        return text
