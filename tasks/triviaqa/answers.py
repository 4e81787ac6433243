"""Equality of answers as in TriviaQA's official script, and search for answers in a text."""

import re
import string

from etcmodel.text import normalized_search

__all__ = ["find_answers", "normalize_answer"]

_SEPARATORS = string.punctuation + "\u2018\u2019\u00b4`"  # Including non-ASCII quotes.
_TO_SPACES = str.maketrans(dict.fromkeys(_SEPARATORS, " "))
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text):
    """Lower-cases a text; replaces punctuation, underscores, articles and white space by a space.

    Source: Joshi et al. 2017 (arXiv:1705.03551) and their script `triviaqa_evaluation.py`.
    """
    text = text.replace("_", " ").lower().translate(_TO_SPACES)
    return " ".join(_ARTICLES.sub(" ", text).split())


def find_answers(text, answers):
    """The places where whole words of a text match an answer: see `text.normalized_search`."""
    return normalized_search.find_normalized(text, answers, normalize_answer, _SEPARATORS)
