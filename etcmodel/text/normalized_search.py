"""Finds answers in a text, comparing normalized texts."""

import collections
import functools
import re

from etcmodel.text.characters import composed

# `str.lower` writes a sigma by its neighbors, which a word alone does not show.
_ONE_SIGMA = str.maketrans("ς", "σ")


def find_normalized(text, answers, normalize, separators):
    """Finds the words of a text that are, once normalized, one of the answers.

    Words are separated by white space and separators: an answer never begins or ends within one.
    Words of which nothing is left, such as articles, are ignored, and so is how accents are
    encoded.

    Args:
        text: str.
        answers: iterable of str.
        normalize: function of a str that returns it normalized: words separated by single spaces.
        separators: str. Characters that normalization turns into white space.
    Returns:
        list of (start, end): the characters `text[start:end]` of each, in order, without
        surrounding separators and ignored words. They may overlap.
    """
    wanted = collections.defaultdict(set)
    for answer in answers:
        if words := _words(answer, normalize):
            wanted[words[0]].add((words, normalize(composed(answer))))
    found = [
        (word, match.start(), match.end())
        for match in re.finditer(rf"[^\s{re.escape(separators)}]+", text)
        for word in _words(match.group(), normalize)
    ]
    spans = set()
    for index, (first, start, _) in enumerate(found):
        for words, normalized in wanted.get(first, ()):
            part = found[index : index + len(words)]
            if words != tuple(word for word, *_ in part):
                continue
            end = part[-1][2]
            if normalize(composed(text[start:end])) == normalized:
                spans.add((start, end))
    return sorted(spans)


@functools.lru_cache(1 << 16)
def _words(text, normalize):
    return tuple(normalize(composed(text)).translate(_ONE_SIGMA).split())
