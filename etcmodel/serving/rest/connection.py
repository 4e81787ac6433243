"""One connection of a client: its requests, one after another, within limits of size and time."""

import contextlib
import http.server
import io
import socket
import time

from etcmodel.serving.rest.application import error_response
from etcmodel.serving.rest.errors import RequestError

__all__ = ["Connection"]

_CHUNK = 1 << 16
_DISCARDED = 64 << 20  # Of a refused body, so much is read: closing before would hide the answer.


class Connection(http.server.BaseHTTPRequestHandler):
    """Hands the requests of a connection to the application of the `RestServer`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # Headers and body leave together.
    _is_refused = False

    def version_string(self):
        """What the server calls itself in its answers."""
        return "etcmodel"

    def setup(self):
        super().setup()
        self.rfile.close()
        self._reader = _Reader(self.connection)
        self.rfile = io.BufferedReader(self._reader, _CHUNK)

    def handle_one_request(self):
        """Waits for a request, and answers it."""
        self._reader.set_deadline(self.server.timeout_seconds)
        self.raw_requestline = b""
        try:
            self.raw_requestline = self.rfile.readline(_CHUNK + 1)
            if not self.raw_requestline:
                self.close_connection = True
                return
            self.server.set_busy(self.connection, True)
            self._reader.set_deadline(self.server.timeout_seconds)
            self._answer_one()
            self.connection.settimeout(self.server.timeout_seconds)
            self.wfile.flush()
            self.server.set_busy(self.connection, False)
        except TimeoutError:
            self.close_connection = True
            if self.raw_requestline:
                self._give_up(408, "The request took too long to arrive.")
        except OSError:  # The client has gone.
            self.close_connection = True
        if self.server.is_stopping:
            self.close_connection = True

    def _answer_one(self):
        self._start = time.monotonic()
        if len(self.raw_requestline) > _CHUNK:
            self.requestline = self.request_version = self.command = ""
            self.send_error(414)
            return
        if not self.parse_request():  # Which has told why.
            return
        try:
            body = self._read_body()
        except RequestError as error:
            self._refuse(error)
            return
        response = self.server.application(self.command, self.path, body)
        self._send(response)

    def _read_body(self):
        if "Transfer-Encoding" in self.headers:  # Whatever it is, it goes before a Content-Length.
            raise RequestError(411, "Send the body whole, with its Content-Length.")
        if self.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise RequestError(415, "Send the body without Content-Encoding.")
        size = self._body_size()
        body = self.rfile.read(size) if size else b""
        if len(body) < size:
            raise ConnectionError("The client has gone.")
        return body

    def _body_size(self):
        text, *others = self.headers.get_all("Content-Length", ["0"])
        # Of two, a proxy in front may take the other one, and another part for the next request.
        if others or not (text.isascii() and text.isdigit()):
            raise RequestError(400, "Content-Length must be a number of bytes, given once.")
        if len(text) > 18 or int(text) > self.server.max_body_bytes:
            raise RequestError(
                413,
                f"A request may have {self.server.max_body_bytes} bytes. Received: {text:.20}.",
            )
        return int(text)

    def handle_expect_100(self):
        """Refuses before the body is sent what would be refused after."""
        try:
            self._body_size()
        except RequestError as error:
            self._refuse(error)
            return False
        return super().handle_expect_100() and not self.wfile.flush()

    def _refuse(self, error):
        """Answers without having read all of the request, which ends the connection."""
        self.close_connection = self._is_refused = True
        self._send(error_response(error))

    def finish(self):
        """Ends the connection; what still comes of a refused request is dropped."""
        with contextlib.suppress(OSError):
            self.wfile.flush()
            if self._is_refused and not self.server.is_stopping:
                self._reader.set_deadline(self.server.timeout_seconds)
                self.connection.shutdown(socket.SHUT_WR)
                for _ in range(_DISCARDED // _CHUNK):
                    if not self.rfile.read1(_CHUNK):
                        break
        super().finish()

    def _send(self, response):
        self.close_connection |= self.server.is_stopping
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in response.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
        self.server.log_answer(response.route, response.status, time.monotonic() - self._start)

    def _give_up(self, status, message):
        with contextlib.suppress(OSError):
            self.connection.settimeout(self.server.timeout_seconds)
            self.command = ""
            self._refuse(RequestError(status, message))
            self.wfile.flush()
            self.server.set_busy(self.connection, False)

    def send_error(self, code, message=None, explain=None):
        """Tells of a request that is no HTTP, as JSON like all other errors."""
        del message, explain
        self.request_version = self.protocol_version  # An answer has headers, whatever was sent.
        name = self.responses.get(code, ("Error",))[0]
        self._refuse(RequestError(int(code), f"The request is not taken: {name}."))

    def log_message(self, format, *args):
        """Nothing: the base class would log what the client sent."""


class _Reader(io.RawIOBase):
    """Bytes from a socket until a deadline, however slowly they come."""

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
