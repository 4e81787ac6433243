"""Servers within the tests' process, and clients of them."""

import contextlib
import http.client
import json
import socket

from etcmodel.serving import rest

PREDICT = "/v1/models/model:predict"


@contextlib.contextmanager
def running(model, *, max_rows=64, max_batch_size=16, wait_seconds=0.0, examples=None, **arguments):
    """A `RestServer` of the model on a free port of this machine."""
    batcher = rest.Batcher(model, max_batch_size=max_batch_size, wait_seconds=wait_seconds)
    application = rest.Application(model, batcher, max_rows=max_rows, examples=examples)
    with rest.RestServer(application, **arguments).running() as server:
        yield server
    batcher.close()


class Client:
    """One connection, kept open."""

    def __init__(self, server):
        self._connection = http.client.HTTPConnection(*server.server_address[:2], timeout=600)

    def ask(self, method, path, body=None, headers=None):
        """(status, JSON of the answer) of a request; a body that is no bytes becomes JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self._connection.request(method, path, body, headers or {})
        self.response = self._connection.getresponse()
        text = self.response.read()
        return self.response.status, json.loads(text) if text else None

    def predict(self, request):
        return self.ask("POST", PREDICT, request)

    def close(self):
        self._connection.close()


def raw(server, text, *, end=False):
    """All that the server sends in answer to these bytes until it closes the connection.

    Args:
        server: `RestServer`.
        text: bytes.
        end: bool. Whether the client then says that it sends no more.
    """
    with socket.create_connection(server.server_address[:2], timeout=600) as connection:
        connection.sendall(text)
        if end:
            connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)
