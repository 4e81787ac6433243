"""Errors that are reported to clients."""


class RequestError(Exception):
    """Raised for a request that is rejected.

    Args:
        status: int. HTTP's status code.
        message: str. A sentence for the client; it may quote the request, so it must not be logged.
        headers: dict of further headers of the response.
    """

    def __init__(self, status, message, headers=None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}
