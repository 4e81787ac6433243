"""Where phrases occur among the words of a page; case does not count."""

__all__ = ["find", "first_occurrences", "normalized", "normalized_words"]


def normalized_words(words):
    """The words as they are compared: a list of str."""
    return [word.lower() for word in words]


def normalized(phrase):
    """A phrase (sequence of words) as one lower-case str."""
    return " ".join(normalized_words(phrase))


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
    """Where the n-gram of each place occurs first.

    Args:
        words: list of str, normalized words of a page.
        max_length: int. The longest n-gram, in words.
        breaks: collection of int. No n-gram goes from before such a word on to it.

    Returns:
        list of `max_length` lists of int, one a word: `result[n - 1][i]` is the first place of
        the n words from i on, or i where a break or the end of the text comes before.
    """
    places = {}
    of_word = [places.setdefault(word, place) for place, word in enumerate(words)]
    result = [of_word]
    broken = set()
    for length in range(2, max_length + 1):
        places = {}
        broken |= {place - length + 1 for place in breaks}
        # An n-gram is a shorter one and a word; their first places stand for both.
        found = [
            place if place in broken else places.setdefault((shorter, of_word[last]), place)
            for place, (shorter, last) in enumerate(
                zip(result[-1], range(length - 1, len(words)), strict=False)
            )
        ]
        result.append(found + list(range(len(found), len(words))))
    return result
