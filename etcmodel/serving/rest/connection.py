"""One client connection: consecutive requests, with limits on size and time."""

import email.utils
import http
import io
import socket
import socketserver
import time

from etcmodel.serving.rest import access, clients, reading
from etcmodel.serving.rest.application import Response, error_response
from etcmodel.serving.rest.errors import RequestError

__all__ = ["Connection", "response_head"]

_BUFFER = 1 << 16
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(socketserver.BaseRequestHandler):
    """Passes the requests of a connection to the application of the `RestServer`."""

    def setup(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self._reader = _Reader(self.request)
        self._file = io.BufferedReader(self._reader, _BUFFER)
        self._head = None  # Of the current request.
        self._start = 0.0  # When it began.
        self._is_refused = False  # Whether a request was answered before it was fully read.

    def handle(self):
        while self._serve_one() and not self.server.is_stopping:
            pass

    def _serve_one(self):
        """Waits for a request and answers it; returns whether the connection stays open."""
        self._head = None
        try:
            self._reader.set_deadline(self.server.timeout_seconds)
            if not self._file.peek(1):
                return False
            self.server.set_busy(self.request, True)
            # For the whole request, however slowly its bytes arrive.
            self._reader.set_deadline(self.server.timeout_seconds)
            try:
                response = self._response()
            except RequestError as error:
                self._is_refused = True
                response = error_response(error)
            except TimeoutError:
                self._is_refused = True
                response = error_response(RequestError(408, "The request took too long to arrive."))
            keeps_open = self._send(response)
            self.server.set_busy(self.request, False)
            return keeps_open
        except OSError:  # The client has disconnected, reads too slowly, or is silent.
            return False

    def _response(self):
        """Reads a request, and returns its `Response`."""
        self._start = time.monotonic()
        head = reading.read_head(self._file)
        self._head = head
        self.server.access.check(head)
        expects = head.version >= (1, 1) and "100-continue" in map(str.lower, head.all("expect"))
        if reading.body_size(head, self.server.max_body_bytes) and expects:
            self.request.sendall(_CONTINUE)
        body = reading.read_body(self._file, head, self.server.max_body_bytes)
        if headers := self.server.access.preflight_headers(head):
            return Response(200, b"", headers=headers)
        with clients.watched(clients.Watch(self.request, head.version >= (1, 1))):
            return self.server.application(head.method, head.target, body)

    def _send(self, response):
        head = self._head
        keeps_open = bool(head) and head.keeps_open() and not self._is_refused
        keeps_open &= not self.server.is_stopping
        headers = {**response.headers, **(self.server.access.headers(head) if head else {})}
        if not keeps_open or head.version < (1, 1):
            headers["Connection"] = "keep-alive" if keeps_open else "close"
        data = response_head(response, headers)
        if not head or head.method != "HEAD":
            data += response.body
        # For the whole response, however slowly it is read.
        self.request.settimeout(self.server.timeout_seconds)
        self.request.sendall(data)
        self.server.log_answer(response.route, response.status, time.monotonic() - self._start)
        return keeps_open

    def finish(self):
        """Ends the connection; the server discards the rest of a rejected request."""
        if self._is_refused and not self.server.is_stopping:
            self.server.turn_away(self.request.dup())


def response_head(response, headers):
    """Formats the head of a response: bytes.

    Args:
        response: `Response`.
        headers: dict of its headers, besides those of every response.
    """
    known = {status.value: status.phrase for status in http.HTTPStatus}
    lines = {
        "Server": "etcmodel",
        "Date": email.utils.formatdate(usegmt=True),
        "Content-Type": response.content_type,
        "Content-Length": len(response.body),
        **access.HEADERS,
        **headers,
    }
    first = f"HTTP/1.1 {response.status} {known.get(response.status, 'Error')}"
    text = "\r\n".join([first, *(f"{name}: {value}" for name, value in lines.items()), "", ""])
    return text.encode("latin-1")


class _Reader(io.RawIOBase):
    """Reads bytes from a socket until a deadline, however slowly they arrive."""

    def __init__(self, connection):
        self._socket = connection
        self._deadline = None

    def set_deadline(self, seconds):
        self._deadline = time.monotonic() + seconds

    def readable(self):
        return True

    def readinto(self, buffer):
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket.recv_into(buffer)
