"""Whether the client of a request still waits, for those who work on the answer.

A thread that answers a request sets how to find out; what it calls asks, before it begins a piece
of work that nobody may want any more.
"""

import contextlib
import contextvars
import select

__all__ = ["Watch", "has_left", "watched"]

_HAS_LEFT = contextvars.ContextVar("has_left", default=lambda: False)
_NEWS = b"HTTP/1.1 100 Continue\r\n\r\n"


def has_left():
    """Whether the client of the request that this thread answers has gone; False if unknown."""
    return _HAS_LEFT.get()()


@contextlib.contextmanager
def watched(function):
    """Lets `has_left` be what the function says, within this block and thread."""
    token = _HAS_LEFT.set(function)
    try:
        yield
    finally:
        _HAS_LEFT.reset(token)


class Watch:
    """Finds out whether the other end of a connection has gone.

    A client that only says that it sends no more looks like one that has gone, until it is sent
    something: it is told to go on, once, which clients of HTTP/1.1 read over. The connection of one
    that has gone breaks.

    Args:
        connection: socket.
        may_ask: bool. Whether the client speaks HTTP/1.1.
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
            with contextlib.suppress(OSError):  # The next look tells.
                self._connection.send(_NEWS)
        return False
