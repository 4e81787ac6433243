"""Requests as bytes: what is read, and what two programs might read differently, which is not."""

import gzip
import io
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.serving.rest import reading
from etcmodel.serving.rest.errors import RequestError

FIRST = b"POST /v1/models/model:predict HTTP/1.1\r\n"
NAME = st.text("abcXYZ019!#$%&'*+-.^_`|~", min_size=1, max_size=12)
VALUE = st.text('ab, ;:=\t"()é', max_size=20)


def file_of(text):
    return io.BufferedReader(io.BytesIO(text))


def read(text, max_bytes=1000):
    """(head, body, what follows) of a request."""
    file = file_of(text)
    head = reading.read_head(file)
    return head, reading.read_body(file, head, max_bytes), file.read()


def refused(text, max_bytes=1000):
    with pytest.raises(RequestError) as error:
        read(text, max_bytes)
    assert "\n" not in error.value.message
    return error.value.status, error.value.message


def packed(body, *lines):
    lines = [b"Content-Encoding: gzip", b"Content-Length: %d" % len(body), *lines]
    return FIRST + b"\r\n".join(lines) + b"\r\n\r\n" + body


@given(st.lists(st.tuples(NAME, VALUE), max_size=5))
def test_fields_are_read_in_order_without_the_blanks_around_them(fields):
    lines = "".join(f"{name}:{value}\r\n" for name, value in fields)
    head = reading.read_head(file_of(FIRST + lines.encode("latin-1") + b"\r\n"))
    expected = tuple((name.lower(), value.strip(" \t")) for name, value in fields)
    assert head == reading.Head("POST", "/v1/models/model:predict", (1, 1), expected)


def test_a_request_ends_where_its_length_says():
    head, body, rest = read(FIRST + b"content-LENGTH: \t3 \r\nA: b\r\nA: c\r\n\r\nabcGET")
    assert (body, rest) == (b"abc", b"GET")
    assert head.all("a") == ["b", "c"] and head.one("x") is None
    assert read(b"\r\nGET / HTTP/1.0\r\n\r\nx")[1:] == (b"", b"x")


@pytest.mark.parametrize(
    ("version", "line", "keeps_open"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.1", "Connection: x, Close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: Keep-Alive\r\n", True),
    ],
)
def test_who_may_ask_again(version, line, keeps_open):
    head = reading.read_head(file_of(f"GET / HTTP/{version}\r\n{line}\r\n".encode()))
    assert head.keeps_open() == keeps_open


@pytest.mark.parametrize(
    "line",
    [
        b"Content-Length : 5\r\n",
        b"Content-Length\t: 5\r\n",
        b" Content-Length: 5\r\n",
        b"X: y\r\n Content-Length: 5\r\n",
        b"X: y\r\n\tz\r\n",
        b"Content-Length: 5\n",
        b"X: y\rContent-Length: 5\r\n",
        b"X: y\x00\r\n",
        b"X: y\x7f\r\n",
        b"X\x01: y\r\n",
        b"X\xe9: y\r\n",
        b"X(y): z\r\n",
        b": y\r\n",
        b"Content-Length\r\n",
        b"\n",
    ],
)
def test_a_field_of_another_form_is_refused(line):
    for before in (b"", b"Host: localhost\r\n"):
        status, message = refused(FIRST + before + line + b"\r\nhello")
        assert status == 400 and "a header must be `Name: value` on one line" in message


@pytest.mark.parametrize(
    ("line", "status", "what"),
    [
        (b"GET  / HTTP/1.1\r\n", 400, "its first line"),
        (b"GET / HTTP/1.1 \r\n", 400, "its first line"),
        (b" GET / HTTP/1.1\r\n", 400, "its first line"),
        (b"GET / HTTP/1.1\n", 400, "its first line"),
        (b"GET /\x0b HTTP/1.1\r\n", 400, "its first line"),
        (b"GET /\xe9 HTTP/1.1\r\n", 400, "its first line"),
        (b"GET /\r\n", 400, "its first line"),
        (b"GET / HTTP/1.10\r\n", 400, "its first line"),
        (b"G@T / HTTP/1.1\r\n", 400, "its first line"),
        (b"GET / http/1.1\r\n", 400, "its first line"),
        (b"\r\n\r\nGET / HTTP/1.1\r\n", 400, "its first line"),
        (b"GET / HTTP/2.0\r\n", 505, "version 1.1"),
        (b"GET / HTTP/0.9\r\n", 505, "version 1.1"),
        (b"GET /" + b"x" * (1 << 16), 414, "65536 bytes"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 16), 431, "65536 bytes"),
        (b"GET / HTTP/1.1\r\n" + (b"X: " + b"x" * 9000 + b"\r\n") * 8, 431, "65536 bytes"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101, 431, "100 headers"),
    ],
    ids=range(17),
)
def test_another_first_line_and_too_much_are_refused(line, status, what):
    found, message = refused(line + b"\r\n")
    assert found == status and message.startswith("The request is not taken: ") and what in message


@pytest.mark.parametrize(
    ("lines", "status", "what"),
    [
        (b"Content-Length: +5\r\n", 400, "given once"),
        (b"Content-Length: 5, 5\r\n", 400, "given once"),
        (b"Content-Length: 5\r\nContent-Length: 5\r\n", 400, "given once"),
        (b"Content-Length: 0x5\r\n", 400, "given once"),
        (b"Content-Length: 5 5\r\n", 400, "given once"),
        (b"Content-Length: \xb2\r\n", 400, "given once"),
        (b"Content-Length:\r\n", 400, "given once"),
        (b"Content-Length: 1001\r\n", 413, "1000 bytes. Received: 1001."),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 411, "Content-Length"),
        (b"Transfer-Encoding: identity\r\n", 411, "Content-Length"),
        (b"Content-Length: 5\r\nContent-Encoding: br\r\n", 415, "in gzip"),
        (b"Content-Length: 5\r\nContent-Encoding: gzip, gzip\r\n", 415, "in gzip"),
        (b"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", 400, "`content-encoding`"),
    ],
)
def test_a_body_whose_end_or_form_is_not_clear_is_refused(lines, status, what):
    found, message = refused(FIRST + lines + b"\r\nhello")
    assert found == status and what in message


@pytest.mark.parametrize("text", [b"", b"GET", FIRST, FIRST + b"X: y\r\n", FIRST + b"X: y\r\n\r"])
def test_a_file_that_ends_within_a_request_is_no_request(text):
    with pytest.raises(ConnectionError):
        read(text)
    for body in (FIRST + b"Content-Length: 9\r\n\r\nabc", packed(gzip.compress(b"x"))[:-2]):
        with pytest.raises(ConnectionError):
            read(body)


@given(st.binary(max_size=1000), st.integers(0, 9))
@settings(max_examples=50)
def test_a_body_in_gzip_is_unpacked(body, level):
    _, found, rest = read(packed(gzip.compress(body, level)) + b"GET", max_bytes=1100)
    assert (found, rest) == (body, b"GET")


@pytest.mark.parametrize(
    ("body", "status", "what"),
    [
        (gzip.compress(b"x" * 1001), 413, "1000 bytes, unpacked"),
        (b"hello", 400, "not gzip"),
        (zlib.compress(b"hello"), 400, "not gzip"),
        (b"", 400, "one whole gzip file"),
        (gzip.compress(b"hello")[:-3], 400, "one whole gzip file"),
        (gzip.compress(b"hello") + b"x", 400, "one whole gzip file"),
        (gzip.compress(b"hello") * 2, 400, "one whole gzip file"),
        (gzip.compress(b"hello")[:-4] + b"\0\0\0\0", 400, "not gzip"),
    ],
)
def test_a_body_that_is_no_gzip_or_too_much_is_refused(body, status, what):
    found, message = refused(packed(body))
    assert found == status and what in message


def test_a_bomb_is_refused_when_a_little_of_it_is_unpacked():
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(150)) + packer.flush()
    file = file_of(packed(bomb))
    head = reading.read_head(file)
    with pytest.raises(RequestError, match="1048576 bytes, unpacked"):
        reading.read_body(file, head, 1 << 20)
    assert file.tell() < 1 << 17 < len(bomb)
