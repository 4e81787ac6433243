"""Where a text has an answer, if texts that are equal once normalized are the same answer."""

import collections
import functools
import re

from etcmodel.text.characters import composed

__all__ = ["find_normalized"]

# `str.lower` writes a sigma by what stands beside it, which a word alone does not tell.
_ONE_SIGMA = str.maketrans("ς", "σ")


def find_normalized(text, answers, normalize, separators):
    """Where words of a text are, once normalized, one of the answers.

    Words are what stands between white space and separators: an answer never begins or ends within
    one. Words of which nothing is left, such as articles, do not matter, and neither does how
    accents are written.

    Args:
        text: str.
        answers: iterable of str.
        normalize: function of a str to it normalized: words with a space between each two.
        separators: str. Characters that normalization makes white space.
    Returns:
        list of (start, end): the characters `text[start:end]` of each, in order, without separators
        and words that do not matter around them. They may overlap.
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
