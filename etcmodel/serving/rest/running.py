"""A server for a while, within a program or a notebook."""

import contextlib

from etcmodel.serving.rest.application import Application
from etcmodel.serving.rest.batching import Batcher
from etcmodel.serving.rest.model import ServedModel
from etcmodel.serving.rest.server import RestServer

__all__ = ["running"]


@contextlib.contextmanager
def running(directory, *, port=0):
    """Serves an export on this machine within this block; yields the `RestServer`, with its `url`.

    Args:
        directory: str. A SavedModel, or a directory of several named by numbers.
        port: int; 0 for any free one.
    Raises:
        ValueError: if there is no export, or it is damaged.
        OSError: if the port cannot be listened on.
    """
    model = ServedModel(directory)
    batcher = Batcher(model)
    try:
        with RestServer(Application(model, batcher), port=port).running() as server:
            yield server
    finally:
        batcher.close()
