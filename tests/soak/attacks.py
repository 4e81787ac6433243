"""Kinds of requests that are none, and of clients who do not behave."""

import dataclasses
import gzip
import json

from tests.soak import malformed

__all__ = ["ATTACKS", "MAX_BODY", "MAX_ROWS", "MAX_TOKENS", "PREDICT", "Attack"]

PREDICT = "/v1/models/model:predict"
MAX_BODY = 64 << 10  # Of the server that is asked.
MAX_ROWS = 8
MAX_TOKENS = 4_000
GOOD = {"instances": [{"question": "How long?", "documents": ["It is 88 km long. It is 7 old."]}]}
_REFUSED = frozenset(range(400, 500))
_NO_HTTP = _REFUSED | {505}


@dataclasses.dataclass(frozen=True)
class Attack:
    """A kind of request and of client.

    Attributes:
        make: function of `random.Random` that returns a list of bytes to send.
        allowed: set of statuses; every answer must have one of them.
        closed: bool. Whether the server may close without an answer, too.
        ends: bool. Whether the client says at the end that it sends no more.
        pause: float. Seconds between the parts.
        leaves: "" to read all; "reset" or "close" to go without reading.
    """

    make: object
    allowed: frozenset = _REFUSED
    closed: bool = False
    ends: bool = False
    pause: float = 0.0
    leaves: str = ""


def _post(body, *lines, length=None, path=PREDICT, host="localhost"):
    head = [f"POST {path} HTTP/1.1", f"Host: {host}", "Connection: close", *lines]
    head.append(f"Content-Length: {len(body) if length is None else length}")
    return [("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + body]


def _get(line, *headers):
    head = [line, "Host: localhost", "Connection: close", *headers]
    return [("\r\n".join(head) + "\r\n\r\n").encode("latin-1")]


def _good():
    return json.dumps(GOOD).encode()


def _cut(random):
    body = _good()
    return _post(body[: random.randrange(len(body))])


def _no_utf8(random):
    body, place = _good(), random.randrange(1, 40)
    return _post(
        body[:place] + random.choice((b"\xff", b"\xc0\xaf", b"\xed\xa0\x80")) + body[place:]
    )


def _deep(random):
    depth = random.choice((200, 2_000, 20_000))
    opened, closed = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
    value = opened * depth + (b"1" + closed * depth if random.random() < 0.7 else b"")
    return _post((b'{"inputs": ' + value + b"}")[:MAX_BODY])


def _digits(random):
    return _post(b'{"inputs": {"question": ' + b"9" * random.choice((5_000, 50_000)) + b"}}")


def _rows(random):
    count = MAX_ROWS + random.randrange(1, 9)
    return _post(json.dumps({"instances": GOOD["instances"] * count}).encode())


def _wrong_fields(random):
    (good,) = GOOD["instances"]
    changes = (
        {"question": 7},
        {"question": "impossible"},
        {"question": "\ud800"},
        {"question": {"b64": "?"}},
        {"documents": "x"},
        {"documents": [["x"]]},
        {"other": 1},
    )
    return _post(json.dumps({"instances": [{**good, **random.choice(changes)}]}).encode())


def _mutated(random):
    return _post(json.dumps(malformed.mutated(random, GOOD)).encode()[:MAX_BODY])


def _path(random):
    letters = "".join(random.choices("ab/.%:?#[]@\\~;=&é\x01\x7f", k=random.randrange(1, 60)))
    paths = (
        f"/{letters}",
        f"//{letters}",
        f"http://{letters}/",
        "http://[/v1",
        "//[",
        "*",
        "/../../etc/passwd",
        "/%00",
        "/v1/models/%ff%fe:predict",
        "/v1/models/model:predict/",
        "/" + "a" * random.choice((1_000, 70_000)),
    )
    return _get(
        f"{random.choice(('PUT', 'BREW', 'POST', 'DELETE'))} {random.choice(paths)} HTTP/1.1"
    )


def _method(random):
    names = ("GET", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "get", "B" * 5_000)
    return _get(f"{random.choice(names)} {PREDICT} HTTP/1.1")


def _headers(random):
    lines = (["X: " + "x" * 70_000], [f"X-{number}: y" for number in range(200)], ["X" * 66_000])
    return _get("GET / HTTP/1.1", *random.choice(lines))


def _framing(random):
    """Bodies whose end is told in a way that is none, or in two ways."""
    body = _good()
    return random.choice(
        (
            _post(b"0\r\n\r\n", "Transfer-Encoding: chunked"),
            _post(body, "Transfer-Encoding: gzip"),
            _post(body, "Transfer-Encoding: identity", "Transfer-Encoding: chunked"),
            _post(body, f"Content-Length: {len(body) - 3}"),
            _post(body, f"Content-Length: {len(body)}", length=3),
            _post(body, length=f"+{len(body)}"),
            _post(body, length=f"{len(body)}, {len(body)}"),
            _post(body, length="0x10"),
            _post(body, length="\u00b2"),
            _post(body, "Content-Encoding: gzip"),
            _post(gzip.compress(body), "Content-Encoding: gzip, gzip"),
            _post(body, "Content-Encoding: br"),
        )
    )


def _hidden(random):
    """A second request where another program would see the body, or another head, of the first."""
    hidden = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(_good())}\r\n\r\n"
    hidden = hidden.encode() + _good()
    length = f"Content-Length: {len(hidden)}"
    line = random.choice(
        (
            length.replace(":", " :"),
            length.replace(":", "\t:"),
            f" {length}",
            f"X: y\r\n {length}",
            f"X: y\n{length}",
            f"X: y\r{length}",
            f"X: \x00\r\n{length}",
            length.replace("-", "\x01"),
            length.replace(" ", " +"),
            f"{length}\r\nContent-Length: 0",
            f"{length}\r\nTransfer-Encoding: chunked",
            f"{length}\n",
        )
    )
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n"
    return [head.encode("latin-1") + hidden]


def _tokens(random):
    (good,) = GOOD["instances"]
    word, count = random.choice(
        (("a ", 6_000), ("水", 6_000), (".", 20_000), ("x" * 40 + " ", 900))
    )
    return _post(json.dumps({"instances": [{**good, "documents": [word * count]}]}).encode())


def _bomb(random):
    bomb = gzip.compress(bytes(random.choice((MAX_BODY + 1, 1 << 22))))
    return _post(bomb, "Content-Encoding: gzip")


def _no_gzip(random):
    packed = gzip.compress(_good())
    cut = packed[: random.randrange(len(packed))]
    return _post(random.choice((cut, packed + b"x", packed * 2)), "Content-Encoding: gzip")


def _other_host(random):
    hosts = ("evil.example", "evil.example:8501", "localhost.evil.example", "", "a b", "x" * 9_000)
    return _post(_good(), host=random.choice(hosts))


def _other_page(random):
    origins = (
        "http://evil.example",
        "null",
        "http://localhost:1",
        "https://localhost.evil.example",
    )
    return _post(_good(), f"Origin: {random.choice(origins)}", "Content-Type: text/plain")


def _large(random):
    return _post(b"x" * (MAX_BODY + random.choice((1, 1 << 10, 1 << 20))))


def _announced(random):
    length = random.choice((MAX_BODY + 1, 10**12, 10**30))
    return _post(b"{", *random.choice(((), ("Expect: 100-continue",))), length=length)


def _noise(random):
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random.randbytes(100) + b"\r\n\r\n"
    noise = random.randbytes(random.randrange(1, 3_000)) + b"\r\n\r\n"
    lines = (b"GET\r\n\r\n", b"GET / HTTP/x.y\r\n\r\n", b"GET / HTTP/3.0\r\n\r\n", b"\x00" * 99)
    return [random.choice((hello, noise, *lines))]


def _more_announced(random):
    return _post(_good(), length=len(_good()) + random.randrange(1, 99))


def _dripping(random):
    (text,) = _post(_good())
    size = random.choice((1, 3))
    return [text[place : place + size] for place in range(0, len(text) - 1, size)]


def _unread(random):
    return [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * random.randrange(1, 300)]


ATTACKS = {
    "JSON that is cut": Attack(_cut),
    "bad UTF-8": Attack(_no_utf8),
    "deep JSON": Attack(_deep),
    "endless integers": Attack(_digits),
    "too many examples": Attack(_rows),
    "fields that are wrong": Attack(_wrong_fields),
    "fields that are odd": Attack(_mutated, _REFUSED | {200}),
    "paths": Attack(_path, _NO_HTTP),
    "methods": Attack(_method),
    "headers": Attack(_headers),
    "framing": Attack(_framing),
    "hidden requests": Attack(_hidden),
    "too many tokens": Attack(_tokens, frozenset({413})),
    "bombs": Attack(_bomb, frozenset({413})),
    "bad gzip": Attack(_no_gzip, frozenset({400})),
    "other hosts": Attack(_other_host, frozenset({400, 421})),
    "other pages": Attack(_other_page, frozenset({403})),
    "bodies that are too large": Attack(_large),
    "large bodies announced": Attack(_announced, ends=True),
    "bodies that do not come": Attack(_more_announced, frozenset(), closed=True, ends=True),
    "no HTTP": Attack(_noise, _NO_HTTP, closed=True, ends=True),
    "half-closed": Attack(lambda random: _post(_good()), frozenset({200}), ends=True),
    "dripping": Attack(_dripping, frozenset({408}), closed=True, pause=0.1),
    "silent": Attack(lambda random: [], frozenset(), closed=True),
    "gone before the answer": Attack(
        lambda random: _post(json.dumps({"instances": GOOD["instances"] * MAX_ROWS}).encode()),
        frozenset(),
        closed=True,
        leaves="close",
    ),
    "gone": Attack(lambda random: _post(_good()), frozenset(), closed=True, leaves="reset"),
    "deaf": Attack(_unread, frozenset(), closed=True, leaves="close"),
}
