"""Exports that all modules of this room ask."""

import pytest

from etcmodel.serving import rest
from tests.serving.rest import clients, text_models


@pytest.fixture(scope="session")
def exports(tmp_path_factory):
    """dict of the kind of an export to its directory."""
    folder = tmp_path_factory.mktemp("exports")
    signatures = {
        "answer": ("answer", "attention"),
        "classify": ("classify",),
        "keyphrases": ("keyphrases",),
    }
    return {
        kind: text_models.export(str(folder / kind / "3"), *names)
        for kind, names in signatures.items()
    }


@pytest.fixture(scope="session")
def models(exports):
    """dict of the kind of an export to its `ServedModel`."""
    return {kind: rest.ServedModel(directory) for kind, directory in exports.items()}


@pytest.fixture
def server(models):
    """A server of the question answering model, on a port of its own."""
    with clients.running(models["answer"]) as server:
        yield server
