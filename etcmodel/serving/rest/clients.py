"""Checks whether the client of a request is still waiting.

The thread that handles a request sets the check; the code that it calls uses it before starting
work that may no longer be wanted.
"""

import contextlib
import contextvars
import select

__all__ = ["Watch", "has_left", "watched"]

_HAS_LEFT = contextvars.ContextVar("has_left", default=lambda: False)
_NEWS = b"HTTP/1.1 100 Continue\r\n\r\n"


def has_left():
    """Whether the client of this thread's request has disconnected; False if unknown."""
    return _HAS_LEFT.get()()


@contextlib.contextmanager
def watched(function):
    """Sets the function behind `has_left`, within this block and thread."""
    token = _HAS_LEFT.set(function)
    try:
        yield
    finally:
        _HAS_LEFT.reset(token)


class Watch:
    """Checks whether the other end of a connection has disconnected.

    A client that has only closed its sending side looks like a disconnected one until something is
    sent to it. So it is sent `100 Continue`, once, which HTTP/1.1 clients skip; if the client has
    disconnected, the connection breaks.

    Args:
        connection: socket.
        may_ask: bool. Whether the client uses HTTP/1.1.
    """

    def __init__(self, connection, may_ask):
        self._connection, self._may_ask = connection, may_ask
        self._ended = getattr(select, "POLLRDHUP", 0)

    def __call__(self):
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._connection, self._ended)
        ((_, events),) = poll.poll(0) or [(0, 0)]
        if events & (select.POLLERR | select.POLLHUP):
            return True
        if events & self._ended and self._may_ask:
            self._may_ask = False
            with contextlib.suppress(OSError):  # The next check will show it.
                self._connection.send(_NEWS)
        return False
