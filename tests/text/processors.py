"""A small vocabulary, and what the tests of processors compare with."""

import numpy as np

from etcmodel.text.processor import EtcProcessor
from tests import vocabularies

WORDS = ["it", "rains", "stay", "##s", "in", "who", "?", ".", "!", "emma", "wrote", "a", "b", "c"]


VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused0]", "[unused1]", *WORDS]


UNK, CLS, SEP = 1, 2, 3


def write_vocab(folder):
    return vocabularies.write(folder, VOCAB)


def ids(words):
    return [VOCAB.index(word) for word in words.split()]


def lists(batch):
    return {name: array.tolist() for name, array in batch.items()}


def same(one, other):
    assert list(one) == list(other)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


EXAMPLES = [
    "It rains. Stay in!",
    {"question": "Who?", "documents": ["A. B", {"title": "C", "text": "Emma wrote it."}]},
    {"table": {"header": ["A", "B"], "rows": [["C", 1]]}},
]


def fixture(words, **settings):
    """A module's `processor` over some words."""

    def make(folder, pieces):
        return EtcProcessor(vocabularies.write(folder, pieces), **settings)

    return vocabularies.fixture([*vocabularies.SPECIAL, *words], make, "processor")
