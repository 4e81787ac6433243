"""The words and phrases of a page, and where phrases occur, ignoring case.

As in the dataset, words are separated only by blanks (U+0020): a no-break space or a tab is part of
a word, and between two blanks is an empty word, which counts like any other. A phrase is its words
joined by blanks, without trimming.
"""

import itertools

import numpy as np

from etcmodel.text.characters import composed

__all__ = [
    "find",
    "first_occurrences",
    "joined",
    "normalized",
    "normalized_words",
    "occurs_in",
    "split",
]

_SEPARATOR = " "


def split(text):
    """Splits a text or a phrase into words: a list of str, which may be empty."""
    return text.split(_SEPARATOR)


def joined(words):
    """Joins words to a text or phrase: the inverse of `split`."""
    return _SEPARATOR.join(words)


def normalized_words(words):
    """The words, normalized for comparison: a list of str."""
    return list(map(str.lower, words))


def normalized(phrase):
    """A phrase (sequence of words) as one lower-case str."""
    return joined(normalized_words(phrase))


def occurs_in(text, phrase):
    """Whether the words of a phrase (str) occur consecutively in a text (str).

    Different encodings of accents are equal.
    """
    text, phrase = (joined(["", composed(x.lower()), ""]) for x in (text, phrase))
    return phrase in text


def find(phrase, words, begin=0, end=None):
    """The first occurrence of a phrase, whole words only.

    Args:
        phrase: list of str, normalized words; not empty.
        words: list of str, normalized words of a page.
        begin, end: int. Search in `words[begin:end]`.

    Returns:
        int. Index of its first word in `words`, or None.
    """
    last = (len(words) if end is None else end) - len(phrase)
    start = begin
    while start <= last:
        try:
            start = words.index(phrase[0], start, last + 1)
        except ValueError:
            return None
        if words[start : start + len(phrase)] == phrase:
            return start
        start += 1
    return None


def first_occurrences(words, max_length, breaks=()):
    """The first occurrence of the n-gram at each position.

    Args:
        words: list of str, normalized words of a page.
        max_length: int. The longest n-gram, in words.
        breaks: collection of int. N-grams do not cross from before such a word into it.

    Returns:
        list of `max_length` lists of int, one a word: `result[n - 1][i]` is the first place of
        the n words from i on, or i where a break or the end of the text comes before.
    """
    of_word = np.fromiter(map({}.setdefault, words, itertools.count()), int, len(words))
    rows, broken = [of_word], []
    for ahead in range(1, max_length):
        count = max(len(words) - ahead, 0)
        # An n-gram is a shorter one and a word; their first places, as one number, stand for both.
        keys = len(words) * rows[-1][:count] + of_word[ahead:]
        broken += [place - ahead for place in breaks if ahead <= place < len(words)]
        broken = [place for place in broken if place < count]
        keys[broken] = -1 - np.array(broken, int)  # Each is unique.
        rows.append(np.concatenate([_firsts(keys), np.arange(count, len(words))]))
    return [row.tolist() for row in rows]


def _firsts(keys):
    """The first position of each position's key: an array of int from an array of int."""
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    firsts = np.empty_like(order)
    firsts[order] = order[is_first][np.cumsum(is_first) - 1]
    return firsts
