"""A server for a while, within a program or a notebook."""

import contextlib

from etcmodel.serving.rest.application import Application
from etcmodel.serving.rest.batching import Batcher
from etcmodel.serving.rest.model import ServedModel
from etcmodel.serving.rest.server import RestServer

__all__ = ["running"]


@contextlib.contextmanager
def running(directory, *, port=0, allowed_hosts=(), cors_origins=()):
    """Serves an export on this machine within this block; yields the `RestServer`, with its `url`.

    Args:
        directory: str. A SavedModel, or a directory of several named by numbers.
        port: int; 0 for any free one.
        allowed_hosts, cors_origins: as of `RestServer`.
    Raises:
        ValueError: if there is no export, or it is damaged; for a name or an origin that no request
            can have.
        OSError: if the port cannot be listened on.

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
