"""Vocabularies of word pieces that tests write, and their tokenizers as fixtures."""

import pytest

from etcmodel.text import tokenization

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write(folder, pieces, name="vocab.txt"):
    """The path of a file with a piece a line."""
    path = folder / name
    path.write_text("\n".join(pieces), encoding="utf-8")
    return str(path)


def tokenizer(folder, pieces, **options):
    return tokenization.FullTokenizer(write(folder, pieces), **options)


def fixture(pieces, make=tokenizer, name="tokenizer"):
    """A module's fixture: what `make` makes of (a folder, the pieces)."""

    @pytest.fixture(scope="module", name=name)
    def made(tmp_path_factory):
        return make(tmp_path_factory.mktemp("vocab"), pieces)

    return made
