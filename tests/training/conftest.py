"""What tests of training share."""

import pytest

from tests.eager import eagerly, in_graphs  # noqa: F401
from tests.training import toy


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Files of toy examples: a pattern."""
    return toy.write_records(str(tmp_path_factory.mktemp("records")))
