"""Runs a server temporarily, inside a program or a notebook."""

import contextlib

from etcmodel.serving.rest.application import Application
from etcmodel.serving.rest.batching import Batcher
from etcmodel.serving.rest.model import ServedModel
from etcmodel.serving.rest.server import RestServer

__all__ = ["running"]


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
