"""An HTTP/1.1 server for an application: persistent connections, one thread each, with limits.

It is not uvicorn: that takes folded header lines, which hide one request inside another, has no
time limit for a head or an unread answer, and drops the answer of a half-closed client.
"""

import collections
import contextlib
import email.utils
import http.client
import io
import logging
import socket
import socketserver
import sys
import threading
import time

from etcmodel.serving.rest import access, batching, reading
from etcmodel.serving.rest.access import Access
from etcmodel.serving.rest.application import Application, Response, error_response
from etcmodel.serving.rest.batching import Batcher
from etcmodel.serving.rest.errors import RequestError
from etcmodel.serving.rest.model import ServedModel

# One client connection: consecutive requests, with limits on size and time.


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
        with batching.watched(batching.Watch(self.request, head.version >= (1, 1))):
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
    lines = {
        "Server": "etcmodel",
        "Date": email.utils.formatdate(usegmt=True),
        "Content-Type": response.content_type,
        "Content-Length": len(response.body),
        **access.HEADERS,
        **headers,
    }
    first = f"HTTP/1.1 {response.status} {http.client.responses.get(response.status, 'Error')}"
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


# The server.


_CHUNK = 1 << 16
_CHUNKS = 16  # Per connection and round.


class TurnedAway:
    """Reads and discards input until clients have read the response and close the connection.

    If the server closed it first, a client in the middle of its request would get a connection
    error instead of the response. One thread calls all methods.

    Args:
        most: int. Maximum number of connections; the oldest are closed first.
        seconds: float. Time after which a connection is closed.
    """

    def __init__(self, most, seconds):
        self._most, self._seconds = most, seconds
        self._connections = collections.deque()  # (connection, deadline), the oldest first.

    def __len__(self):
        return len(self._connections)

    def add(self, connection):
        """Takes over an answered connection."""
        try:
            connection.shutdown(socket.SHUT_WR)
            connection.setblocking(False)
        except OSError:  # The client has disconnected.
            connection.close()
            return
        self._connections.append((connection, time.monotonic() + self._seconds))
        while len(self._connections) > self._most:
            self._connections.popleft()[0].close()

    def read(self):
        """Reads available input without waiting; closes finished connections."""
        now = time.monotonic()
        for _ in range(len(self._connections)):
            connection, deadline = self._connections.popleft()
            if now < deadline and _is_open(connection):
                self._connections.append((connection, deadline))
            else:
                connection.close()

    def close(self):
        """Closes all connections."""
        while self._connections:
            self._connections.popleft()[0].close()


def _is_open(connection):
    with contextlib.suppress(OSError):
        try:
            return all(connection.recv(_CHUNK) for _ in range(_CHUNKS))
        except BlockingIOError:
            return True
    return False


_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.05


class RestServer(socketserver.ThreadingTCPServer):
    """Serves an application until it is stopped.

    Only the kind of the request, the status and the time are logged, never what a client sent.

    Args:
        application: function from method, path and body to a `Response`.
        host: str. Address to listen on.
        port: int. 0 for any free port.
        max_body_bytes: int. Requests with a larger body are rejected.
        max_connections: int. Further clients are asked to retry later.
        timeout_seconds: float. Time for a client to send a complete request once it has begun, to
            read a complete response, or to keep an idle connection.
        log_requests: bool. Log every request, not only those on which the server failed.
        allowed_hosts: host names that requests may use, besides localhost, IP addresses and `host`;
            "*" for all.
        cors_origins: origins, such as "https://example.com", whose pages may send requests from a
            browser; "*" for all. The server's own page always may.
        metrics: `Metrics` that count the requests; None: they are not counted.
    Attributes:
        num_answers: int. Number of requests answered, including with errors.
    Raises:
        OSError: in one line with the address, if the server cannot listen on it.
        ValueError: for an invalid host name or origin.

    >>> from etcmodel.serving import rest
    >>> model = rest.ServedModel("my_export")
    >>> server = rest.RestServer(rest.Application(model, rest.Batcher(model)))
    >>> with server.running():
    ...     print(server.url.rpartition(":")[0])
    http://127.0.0.1
    """

    allow_reuse_address = True  # Connections of a just stopped server do not block the port.
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        application,
        *,
        host="127.0.0.1",
        port=0,
        max_body_bytes=4 << 20,
        max_connections=64,
        timeout_seconds=60.0,
        log_requests=False,
        allowed_hosts=(),
        cors_origins=(),
        metrics=None,
    ):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.application = application
        self.max_body_bytes, self.max_connections = max_body_bytes, max_connections
        self.timeout_seconds, self.log_requests = timeout_seconds, log_requests
        self.access = Access(allowed_hosts, cors_origins, own_host=host)
        self.metrics = metrics
        self.num_answers = 0
        self.is_stopping = False
        self._are_busy = {}  # From open socket to whether it has begun a request.
        self._changed = threading.Condition()
        self._turned_away = TurnedAway(max_connections, timeout_seconds)
        self._leaving = collections.deque()  # Sockets to turn away.
        try:
            super().__init__((host, port), Connection)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OSError(
                f"Cannot listen on {host}:{port}: {reason}. Choose another --host or --port."
            ) from None

    @property
    def url(self):
        """str, such as http://127.0.0.1:8501/."""
        host, port = self.server_address[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    @contextlib.contextmanager
    def running(self):
        """Serves in a separate thread within a `with` block; yields the server, and stops it."""
        thread = threading.Thread(target=self.serve_forever, args=(_POLL_SECONDS,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()

    def stop(self, grace_seconds=30.0):
        """Stops accepting connections, answers pending requests, and closes all connections.

        Args:
            grace_seconds: float. Time after which unanswered requests are dropped.
        Returns:
            int. Number of dropped requests.
        """
        with self._changed:
            self.is_stopping = True
            for connection, is_busy in self._are_busy.items():
                if not is_busy:
                    with contextlib.suppress(OSError):  # The client has disconnected.
                        connection.shutdown(socket.SHUT_RD)
        self.shutdown()
        self.server_close()
        deadline = time.monotonic() + grace_seconds
        with self._changed:
            while self._are_busy and (left := deadline - time.monotonic()) > 0:
                # Short waits: a signal delivered to another thread does not wake this one.
                self._changed.wait(min(left, _POLL_SECONDS))
            return collections.Counter(self._are_busy.values())[True]

    def process_request(self, request, client_address):
        """Starts a connection, unless there are too many."""
        with self._changed:
            is_welcome = len(self._are_busy) < self.max_connections and not self.is_stopping
            if is_welcome:
                self._are_busy[request] = False
        if is_welcome:
            try:
                super().process_request(request, client_address)
            except BaseException:  # No thread can be started.
                self._forget(request)
                raise
            return
        error = RequestError(503, f"The server has {self.max_connections} connections; come later.")
        response = error_response(error)
        with contextlib.suppress(OSError):
            request.settimeout(1)
            request.sendall(response_head(response, {"Connection": "close"}) + response.body)
        self._turned_away.add(request)

    def turn_away(self, connection):
        """Takes over an answered connection whose client may still be sending."""
        self._leaving.append(connection)

    def service_actions(self):
        """Called repeatedly by the thread that accepts connections."""
        while self._leaving:
            self._turned_away.add(self._leaving.popleft())
        self._turned_away.read()

    def server_close(self):
        """Stops listening."""
        super().server_close()
        while self._leaving:
            self._leaving.popleft().close()
        self._turned_away.close()

    def process_request_thread(self, request, client_address):
        """Serves a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def _forget(self, connection):
        with self._changed:
            del self._are_busy[connection]
            self._changed.notify_all()

    def set_busy(self, connection, is_busy):
        """Records that a request of the connection begins or is answered."""
        with self._changed:
            self._are_busy[connection] = is_busy
            self.num_answers += not is_busy

    def handle_error(self, request, client_address):
        """Logs an error of a connection, without what the client sent."""
        kind = sys.exc_info()[1].__class__
        if not issubclass(kind, OSError):  # Disconnecting clients are not logged.
            _LOG.error("A connection failed: %s", kind.__name__)

    def log_answer(self, route, status, seconds):
        """Counts and logs an answered request."""
        if self.metrics:
            self.metrics.add(route, status, seconds)
        # Of the statuses from 500 on, only 505 is the client's fault.
        has_failed = status >= 500 and status != http.HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
        if has_failed or self.log_requests:
            level = logging.ERROR if has_failed else logging.INFO
            ms = round(seconds * 1000, 1)
            fields = {"route": route, "status": status, "ms": ms}
            _LOG.log(level, "%s %d %.1f ms", route, status, ms, extra={"fields": fields})


# Runs a server temporarily, inside a program or a notebook.


@contextlib.contextmanager
def running(directory, *, port=0, allowed_hosts=(), cors_origins=()):
    """Serves an export on this machine within a `with` block; yields the `RestServer`.

    Args:
        directory: str. A SavedModel, or a directory of several, named by numbers.
        port: int. 0 for any free port.
        allowed_hosts, cors_origins: as in `RestServer`.
    Raises:
        ValueError: if there is no export, or it is damaged; for an invalid host name or origin.
        OSError: if the server cannot listen on the port.

    >>> import json, urllib.request
    >>> from etcmodel.serving import rest
    >>> with rest.running("my_export") as server:
    ...     found = json.load(urllib.request.urlopen(f"{server.url}v1/models/model"))
    >>> found["model_version_status"][0]["state"]
    'AVAILABLE'
    """
    model = ServedModel(directory)
    batcher = Batcher(model)
    access = {"allowed_hosts": allowed_hosts, "cors_origins": cors_origins}
    try:
        with RestServer(Application(model, batcher), port=port, **access).running() as server:
            yield server
    finally:
        batcher.close()
