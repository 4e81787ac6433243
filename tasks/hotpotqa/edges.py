"""Edges between the global tokens of a HotpotQA input that refer to the same thing.

The paper's input encodes which sentence a token is in, but not which words of the question a
sentence contains, nor which other paragraph it names. Both can be found in the text, and both are
relations between global tokens, as in any graph (Ainslie et al. 2020, section 3.2).
"""

import collections
from typing import NamedTuple

from etcmodel.text.vocabulary import SPIECE_UNDERLINE

__all__ = ["Piece", "question_piece", "same_word_edges", "text_piece", "title_edges"]


class Piece(NamedTuple):
    """The words of the question, a title or a sentence.

    Attributes:
        words: list of (str, tuple of int). Each word in lower case, with its global tokens: its own
            in the question, that of the sentence or title elsewhere.
        paragraph: int. The paragraph's global token; -1 for the question.
        is_title: bool.
    """

    words: list
    paragraph: int = -1
    is_title: bool = False


def question_piece(tokens, first_global_token):
    """The `Piece` of the question, whose tokens (list of str) each have a global token."""
    return Piece(
        [
            (word, tuple(range(first_global_token + begin, first_global_token + end)))
            for word, begin, end in _words(tokens)
        ]
    )


def text_piece(tokens, global_token, paragraph, is_title):
    """The `Piece` of a title or a sentence with these tokens (list of str)."""
    words = [(word, (global_token,)) for word, _, _ in _words(tokens)]
    return Piece(words, paragraph, is_title)


def same_word_edges(pieces):
    """Pairs of a sentence or title and a question token whose word it contains.

    Words in more than half of the paragraphs, and in at least three, are not distinctive and are
    ignored; so are punctuation marks.

    Args:
        pieces: list of `Piece`, the question's first.
    Returns:
        list of (global token of the sentence or title, global token of the question).
    """
    question, *others = pieces
    common = _common_words(others)
    tokens_of = collections.defaultdict(list)
    for word, tokens in question.words:
        if word not in common and any(map(str.isalnum, word)):
            tokens_of[word] += tokens
    edges = (
        (own, token)
        for piece in others
        for word, (own,) in piece.words
        for token in tokens_of.get(word, ())
    )
    return list(dict.fromkeys(edges))


def title_edges(pieces):
    """Pairs of a mention of a paragraph's title, and that paragraph.

    A title must be mentioned as a whole, except for parentheses at its end.

    Args:
        pieces: list of `Piece`.
    Returns:
        list of (global token of a sentence, of another title or of a question's word, global token
        of a paragraph).
    """
    edges = []
    for title in (piece for piece in pieces if piece.is_title):
        name = _name([word for word, _ in title.words])
        for piece in pieces:
            if piece.paragraph != title.paragraph:
                edges += ((token, title.paragraph) for token in _where(name, piece))
    return list(dict.fromkeys(edges))


def _words(tokens):
    """list of (word, first token, token after the last) of word or sentence pieces."""
    is_sentencepiece = any(token.startswith(SPIECE_UNDERLINE) for token in tokens)
    words = []
    for index, token in enumerate(tokens):
        if is_sentencepiece:
            text = token.lstrip(SPIECE_UNDERLINE)
            goes_on = text == token and text[:1].isalnum()
        else:
            text = token.removeprefix("##")
            goes_on = text != token
        if goes_on and words:
            word, begin, _ = words[-1]
            words[-1] = (word + text.lower(), begin, index + 1)
        else:  # Empty for a sentence piece that is only a space.
            words.append((text.lower(), index, index + 1))
    return [word for word in words if word[0]]


def _common_words(pieces):
    paragraphs_of = collections.defaultdict(set)
    for piece in pieces:
        for word, _ in piece.words:
            paragraphs_of[word].add(piece.paragraph)
    num_paragraphs = len({piece.paragraph for piece in pieces})
    most = max(2, num_paragraphs // 2)
    return {word for word, found in paragraphs_of.items() if len(found) > most}


def _name(words):
    if "(" in words[1:] and words[-1] == ")":
        return words[: words.index("(", 1)]
    return words


def _where(name, piece):
    """The global tokens of the places where a piece contains the words of `name` in sequence."""
    words = [word for word, _ in piece.words]
    for start in range(len(words) - len(name) + 1) if name else ():
        if words[start] == name[0] and words[start : start + len(name)] == name:
            for _, tokens in piece.words[start : start + len(name)]:
                yield from tokens
