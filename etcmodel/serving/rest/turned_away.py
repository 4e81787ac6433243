"""Connections that were answered at once, whose clients may still be sending."""

import collections
import contextlib
import socket
import time

__all__ = ["TurnedAway"]

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
