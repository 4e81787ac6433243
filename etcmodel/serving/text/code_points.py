"""Properties of characters, looked up in a graph.

The tables are made from the Python tokenizers' own functions when a model is exported, character by
character. So a graph uses the same version of Unicode as the exporting Python, independent of the
server's libraries.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from etcmodel.text import characters

__all__ = [
    "CASED",
    "CASE_IGNORABLE",
    "DIGIT",
    "MARK",
    "OF_WORD",
    "PUNCTUATION",
    "SPACE",
    "WORD_BREAK",
    "WORD_OF_ITS_OWN",
    "Spelling",
    "Table",
    "has",
    "properties",
    "spell",
]

_NUM_CODE_POINTS = 0x110000
_PAGE_BITS = 8
_NOTHING_KNOWN = {"Cn", "Co", "Cs"}  # Not assigned, for private use, surrogates.

SPACE = 1  # White space, as Python's `str.isspace` and `re`'s `\s` have it.
WORD_BREAK = 2  # What stands between the words of a tokenizer.
WORD_OF_ITS_OWN = 4  # CJK ideographs.
PUNCTUATION = 8
MARK = 16  # Nonspacing marks, such as accents.
CASED = 32  # These two decide about a final sigma.
CASE_IGNORABLE = 64

OF_WORD = 128  # See `characters.is_of_word`.
DIGIT = 256  # Decimal ones.

_FINAL_SIGMA = "ς"
_SIGMA = "Σ"


class Table:
    """An int32 for each code point: pages of 256, of which equal ones are kept once.

    Args:
        values: int array [0x110000].
    Call args:
        code_points: int32, any shape.
    Returns:
        int32, likewise.
    """

    def __init__(self, values):
        pages = np.asarray(values, np.int32).reshape(-1, 1 << _PAGE_BITS)
        self._pages, page_of = np.unique(pages, axis=0, return_inverse=True)
        self._page_of = page_of.reshape(-1).astype(np.int32)

    def __call__(self, code_points):
        pages = tf.gather(self._page_of, tf.bitwise.right_shift(code_points, _PAGE_BITS))
        within = tf.bitwise.bitwise_and(code_points, (1 << _PAGE_BITS) - 1)
        return tf.gather(self._pages.reshape(-1), pages * (1 << _PAGE_BITS) + within)


@functools.lru_cache
def properties():
    """`Table` of the properties above, which are bits."""
    values = np.zeros(_NUM_CODE_POINTS, np.int32)
    for code in _assigned():
        values[code] = _properties_of(code)
    return Table(values)


@functools.lru_cache
def _assigned():
    """The code points of all blocks of 256 in which Unicode has assigned any: tuple of int."""
    pages = (range(start, start + 256) for start in range(0, _NUM_CODE_POINTS, 256))
    return tuple(
        code
        for page in pages
        if not {unicodedata.category(chr(code)) for code in page} <= _NOTHING_KNOWN
        for code in page
    )


def _properties_of(code):
    char, cleaned = chr(code), characters.CLEAN[code]
    if unicodedata.category(char) in _NOTHING_KNOWN:
        return WORD_OF_ITS_OWN if len(cleaned) > 1 else 0
    ends_sigma = (char + _SIGMA).lower().endswith(_FINAL_SIGMA)
    is_skipped = not ends_sigma and ("a" + char + _SIGMA).lower().endswith(_FINAL_SIGMA)
    held = {
        SPACE: char.isspace(),
        WORD_BREAK: cleaned.isspace(),
        WORD_OF_ITS_OWN: len(cleaned) > 1,
        PUNCTUATION: characters.is_punctuation(char),
        MARK: unicodedata.category(char) == "Mn",
        CASED: ends_sigma,
        CASE_IGNORABLE: is_skipped,
        OF_WORD: characters.is_of_word(char),
        DIGIT: char.isdecimal(),
    }
    return sum(bit for bit, holds in held.items() if holds)


def has(held, bits):
    """bool: which of the characters with properties `held` have one of these bits."""
    return tf.not_equal(tf.bitwise.bitwise_and(held, bits), 0)


class Spelling(NamedTuple):
    """Characters after normalization, those of all texts one after the other.

    Attributes:
        code_points: int32 [num_spelled].
        sources: int32 [num_spelled]. Index of the character that each is from.
    """

    code_points: tf.Tensor
    sources: tf.Tensor


@functools.lru_cache
def _spellings(lower_case):
    """(`Table` of lengths, `Table` of starts, int32 of what is spelled there).

    The start -1 is for characters that are spelled as they are.
    """
    lengths, starts = np.ones([2, _NUM_CODE_POINTS], np.int32) * [[1], [-1]]
    spelled = []
    for code in _assigned():
        text = characters.CLEAN[code].strip()
        if lower_case and unicodedata.category(chr(code)) not in _NOTHING_KNOWN:
            text = characters.strip_accents(text.lower())
        lengths[code] = len(text)
        if text not in ("", chr(code)):
            starts[code] = len(spelled)
            spelled += map(ord, text)
    return Table(lengths), Table(starts), np.array(spelled or [0], np.int32)


def spell(code_points, lower_case):
    """What a tokenizer makes of characters: cleaned, and maybe in lower case without accents.

    Args:
        code_points: int32 [num_chars].
        lower_case: bool.
    Returns:
        `Spelling`. White space and what vanishes have no characters, some have several.
    """
    lengths_of, starts_of, spelled = _spellings(lower_case)
    lengths, starts = lengths_of(code_points), starts_of(code_points)
    sources = tf.repeat(tf.range(tf.size(code_points)), lengths)
    firsts = tf.cumsum(lengths, exclusive=True)
    within = tf.range(tf.size(sources)) - tf.gather(firsts, sources)
    starts = tf.gather(starts, sources)
    changed = tf.gather(spelled, tf.maximum(starts, 0) + within)
    return Spelling(tf.where(starts < 0, tf.gather(code_points, sources), changed), sources)
