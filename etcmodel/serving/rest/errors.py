"""What a client is told of a request that gets no answer."""

__all__ = ["RequestError"]


class RequestError(Exception):
    """A request that is not answered.

    Args:
        status: int. HTTP's status code.
        message: str. A sentence for the client; it may quote the request and belongs in no log.
        headers: dict of further headers of the answer.
    """

    def __init__(self, status, message, headers=None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}
