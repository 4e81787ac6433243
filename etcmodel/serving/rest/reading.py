"""Parses requests strictly by RFC 9112.

Anything that two programs on the way read differently can hide one request inside another (request
smuggling). So errors that the standard lets a server repair (bare line feeds, folded lines, a blank
before a colon, a repeated field) are rejected, and the connection is closed.
"""

import dataclasses
import http
import re
import zlib

from etcmodel.serving.rest.errors import RequestError
from etcmodel.shown_values import shown

_MAX_HEAD = 1 << 16  # Bytes of the first line, and of all other lines together.
_MAX_FIELDS = 100
_CHUNK = 1 << 16
_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_FIRST_LINE = re.compile(rb"(%s) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])\r\n" % _NAME)
_FIELD = re.compile(rb"(%s):([\t\x20-\x7e\x80-\xff]*)\r\n" % _NAME)
_WHOLE_URL = re.compile(r"https?://([^/?#]*)([^?#]*).*", re.IGNORECASE)
_GZIP = frozenset({"gzip", "x-gzip"})


@dataclasses.dataclass(frozen=True)
class Head:
    """The head of a request.

    Attributes:
        method, target: str. As sent.
        version: tuple of int, such as (1, 1).
        fields: tuple of (name in lower case, value).
    """

    method: str
    target: str
    version: tuple
    fields: tuple

    def all(self, name):
        """All values of a field: list of str."""
        return [value for key, value in self.fields if key == name]

    def one(self, name):
        """The value of a field that may occur only once; None if it is missing.

        Raises:
            RequestError: 400, if it occurs twice.
        """
        values = self.all(name)
        if len(values) > 1:
            raise RequestError(400, f"`{name}` must be given once.")
        return values[0] if values else None

    def keeps_open(self):
        """Whether the client wants to keep the connection open."""
        wanted = {x.strip().lower() for x in ",".join(self.all("connection")).split(",")}
        return "close" not in wanted and (self.version >= (1, 1) or "keep-alive" in wanted)


def read_head(file):
    """Reads the `Head` of the next request.

    Args:
        file: buffered binary file.
    Raises:
        RequestError: if it is malformed or too large.
        ConnectionError: if the file ends before it does.
    """
    line = _line(file, _MAX_HEAD, 414)
    if line == b"\r\n":  # Which may follow the request before.
        line = _line(file, _MAX_HEAD, 414)
    match = _FIRST_LINE.fullmatch(line)
    if not match:
        raise _refused(400, "its first line must be `METHOD /address HTTP/1.1`, ended by CR LF")
    method, target, *version = match.groups()
    version = tuple(map(int, version))
    if version[0] != 1:
        raise _refused(505, "this server has version 1.1")
    return Head(method.decode(), target.decode(), version, tuple(_fields(file)))


def _fields(file):
    left = _MAX_HEAD
    for _ in range(_MAX_FIELDS + 1):
        line = _line(file, left, 431)
        if line == b"\r\n":
            return
        left -= len(line)
        match = _FIELD.fullmatch(line)
        if not match:
            raise _refused(
                400,
                "a header must be `Name: value` on one line, without a blank before the colon or "
                "control characters, ended by CR LF",
            )
        yield match[1].decode().lower(), match[2].decode("latin-1").strip(" \t")
    raise _refused(431, f"it may have {_MAX_FIELDS} headers")


def _line(file, size, status):
    line = file.readline(size + 1)
    if len(line) > size:
        raise _refused(status, f"so much may have {_MAX_HEAD} bytes")
    if not line.endswith(b"\n"):
        raise ConnectionError("The client has gone.")
    return line


def _refused(status, why):
    return RequestError(
        status, f"The request is not taken: {http.HTTPStatus(status).phrase}: {why}."
    )


def target_parts(target):
    """(authority, path) of a request's target: str each; the authority may be None.

    Raises:
        RequestError: 400, if the target is not valid for a server by RFC 9112.
    """
    if target.startswith("/"):  # Also "//x/y", which does not name another server: RFC 9112, 3.2.1.
        return None, target.partition("?")[0]
    if target == "*":
        return None, target
    match = _WHOLE_URL.fullmatch(target)
    if not match:
        raise RequestError(
            400,
            "A request must be for an address that begins with `/`, or for a whole URL of http. "
            f"Received: {shown(target, 80)}.",
        )
    return match[1], match[2] or "/"


def body_size(head, max_bytes):
    """The size of the body that follows a head, in bytes: int.

    Raises:
        RequestError: if the size is invalid, missing or too large; 415 for an encoding other than
            gzip.
    """
    if head.all("transfer-encoding"):  # It takes precedence over Content-Length.
        raise RequestError(411, "Send the body whole, with its Content-Length.")
    lengths = head.all("content-length") or ["0"]
    # With two values, a proxy in front may use the other one and split requests differently.
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
        raise RequestError(400, "Content-Length must be a number of bytes, given once.")
    if len(lengths[0]) > 18 or int(lengths[0]) > max_bytes:
        raise RequestError(
            413, f"A request may have {max_bytes} bytes. Received: {lengths[0]:.20}."
        )
    if _encoding(head) not in {"identity", *_GZIP}:
        raise RequestError(
            415, "Send the body without Content-Encoding, or in gzip.", {"Accept-Encoding": "gzip"}
        )
    return int(lengths[0])


def _encoding(head):
    return (head.one("content-encoding") or "identity").lower()


def read_body(file, head, max_bytes):
    """Reads the body of a request, decompressed: bytes.

    Args:
        file: buffered binary file, positioned after the head.
        head: `Head`.
        max_bytes: int. Maximum size of the body, both as sent and decompressed.
    Raises:
        RequestError: as in `body_size`; 413 as soon as the decompressed body is too large, 400 if
            it is not in the encoding that the head names.
        ConnectionError: if the file ends before it does.
    """
    size = body_size(head, max_bytes)
    if _encoding(head) in _GZIP:
        return b"".join(_unpacked(file, size, max_bytes))
    body = file.read(size) if size else b""
    if len(body) < size:
        raise ConnectionError("The client has gone.")
    return body


def _unpacked(file, size, left):
    """Yields the parts of a gzip body of `size` bytes, up to `left` decompressed bytes."""
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    allowed = left
    while size and not unpacker.eof:
        packed = file.read1(min(size, _CHUNK))
        if not packed:
            raise ConnectionError("The client has gone.")
        size -= len(packed)
        try:
            part = unpacker.decompress(packed, left + 1)
        except zlib.error:
            raise RequestError(400, "The body is not gzip, as Content-Encoding says.") from None
        left -= len(part)
        if left < 0:
            raise RequestError(413, f"A request may have {allowed} bytes, unpacked. This has more.")
        yield part
    if size or unpacker.unused_data or not unpacker.eof:
        raise RequestError(400, "The body must be one whole gzip file, as Content-Encoding says.")
