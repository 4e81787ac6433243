"""A processor over the small vocabulary."""

import pytest

from etcmodel.text.processor import EtcProcessor
from tests.text.processors import write_vocab


@pytest.fixture(scope="module")
def vocab(tmp_path_factory):
    return write_vocab(tmp_path_factory.mktemp("vocab"))


@pytest.fixture(scope="module")
def processor(vocab):
    return EtcProcessor(vocab)
