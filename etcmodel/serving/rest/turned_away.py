"""Connections that were answered at once, of clients who may still be sending."""

import collections
import contextlib
import socket
import time

__all__ = ["TurnedAway"]

_CHUNK = 1 << 16
_CHUNKS = 16  # Of a connection at a time.


class TurnedAway:
    """Reads and drops what clients send until they have read the answer and end the connection.

    If it were closed before, a client in the middle of its request would get an error of the
    connection instead of the answer. One thread calls all methods.

    Args:
        most: int. Of more connections the oldest are closed.
        seconds: float. After so long they are closed, too.
    """

    def __init__(self, most, seconds):
        self._most, self._seconds = most, seconds
        self._connections = collections.deque()  # (connection, deadline), the oldest first.

    def __len__(self):
        return len(self._connections)

    def add(self, connection):
        """Takes a connection on which all is said."""
        try:
            connection.shutdown(socket.SHUT_WR)
            connection.setblocking(False)
        except OSError:  # The client has gone.
            connection.close()
            return
        self._connections.append((connection, time.monotonic() + self._seconds))
        while len(self._connections) > self._most:
            self._connections.popleft()[0].close()

    def read(self):
        """Reads what has come, waiting for nothing; closes what has ended."""
        now = time.monotonic()
        for _ in range(len(self._connections)):
            connection, deadline = self._connections.popleft()
            if now < deadline and _is_open(connection):
                self._connections.append((connection, deadline))
            else:
                connection.close()

    def close(self):
        """Closes all."""
        while self._connections:
            self._connections.popleft()[0].close()


def _is_open(connection):
    with contextlib.suppress(OSError):
        try:
            return all(connection.recv(_CHUNK) for _ in range(_CHUNKS))
        except BlockingIOError:
            return True
    return False
