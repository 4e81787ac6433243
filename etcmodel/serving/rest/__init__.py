"""Serves an exported model over HTTP in TensorFlow Serving's JSON format, for small loads."""

from etcmodel.serving.rest.application import Application
from etcmodel.serving.rest.batching import Batcher
from etcmodel.serving.rest.metrics import Metrics
from etcmodel.serving.rest.model import ServedEncoder, ServedModel
from etcmodel.serving.rest.raw_examples import RawExamples
from etcmodel.serving.rest.server import RestServer, running

__all__ = [
    "Application",
    "Batcher",
    "Metrics",
    "RawExamples",
    "RestServer",
    "ServedEncoder",
    "ServedModel",
    "running",
]
