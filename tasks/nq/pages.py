"""One tokenized page, before it is split into windows.

Only the contents of top-level candidates are kept: headings and the like between them are never
part of an answer.
"""

import dataclasses
import functools

from .config import ANSWER_TYPES
from .spans import NO_SPAN, Span

__all__ = ["Answer", "Page", "make_page", "make_word_tokenizer"]

_MAX_CACHED_WORDS = 1 << 18


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of an annotation, in words of the page.

    Attributes:
        long, short: `Span`. The short one reaches from the first to the last short answer; in the
            release as the file lists them, which may be backwards.
        answer_type: int, of `ANSWER_TYPES`.
    """

    long: Span
    short: Span
    answer_type: int


NO_ANSWER = Answer(NO_SPAN, NO_SPAN, ANSWER_TYPES["none"])


@dataclasses.dataclass(frozen=True)
class Page:
    """The tokens of a question and its page.

    Attributes:
        example_id: int.
        question_ids: list of int. All of them.
        input_question_ids: list of int. Those that go into the model's input.
        token_ids: list of int [num_tokens]. Of the page.
        token_pos: list of int [num_tokens]. The word of the page that each token comes from.
        candidate_ids: list of int [num_tokens]. The top-level candidate around each token.
        candidate_words: dict of int to (int, int). First and last word with a token, of each
            candidate in `candidate_ids`.
        answers: tuple of `Answer`, one for each annotation.
    """

    example_id: int
    question_ids: list
    input_question_ids: list
    token_ids: list
    token_pos: list
    candidate_ids: list
    candidate_words: dict
    answers: tuple


def make_word_tokenizer(tokenizer):
    """Makes a function from a word to the tuple of its token ids, which caches frequent words."""

    @functools.lru_cache(maxsize=_MAX_CACHED_WORDS)
    def word_ids(word):
        return tuple(tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word)))

    return word_ids


def make_page(example, config, word_ids):
    """Tokenizes an example word by word, so that the word of each token is known.

    Args:
        example: an `NqExample`.
        config: an `NqInputConfig`.
        word_ids: the result of `make_word_tokenizer`.

    Returns:
        A `Page`.
    """
    token_ids, token_pos, candidate_ids, candidate_words = [], [], [], {}
    for index, candidate in _top_level(example.candidates, config):
        first = len(token_ids)
        for position in range(candidate.start, candidate.end):
            word = example.words[position]
            if not example.is_html[position]:
                ids = word_ids(word)
            elif config.include_html_tokens:
                ids = (_html_token_id(word, config),)
            else:
                continue
            token_ids += ids
            token_pos += [position] * len(ids)
        if len(token_ids) > first:
            candidate_ids += [index] * (len(token_ids) - first)
            candidate_words[index] = token_pos[first], token_pos[-1]
    question_ids = list(word_ids(example.question))
    return Page(
        example_id=example.example_id,
        question_ids=question_ids,
        input_question_ids=question_ids[: config.question_len],
        token_ids=token_ids,
        token_pos=token_pos,
        candidate_ids=candidate_ids,
        candidate_words=candidate_words,
        answers=tuple(_answer(annotation, config) for annotation in example.annotations),
    )


def _top_level(candidates, config):
    """(index, candidate) of the top-level candidates, in page order."""
    found = [(i, candidate) for i, candidate in enumerate(candidates) if candidate.top_level]
    if config.release_compatible:  # In file order, which is the same in the real files.
        return found
    return sorted(found, key=lambda item: item[1].start)


def _html_token_id(word, config):
    return config.html_end_token_id if word.startswith("</") else config.html_start_token_id


def _answer(annotation, config):
    short = _short_span(annotation.short_answers, config)
    if annotation.yes_no != "NONE":
        answer_type = annotation.yes_no.lower()
    elif short != NO_SPAN:
        answer_type = "short"
    else:
        answer_type = "long" if annotation.long_answer.start >= 0 else "none"
    if short == NO_SPAN and config.predict_la_when_no_sa:
        short = annotation.long_answer
    return Answer(annotation.long_answer, short, ANSWER_TYPES[answer_type])


def _short_span(short_answers, config):
    """One span around all short answers; in the release, from the first to the last listed."""
    with_tokens = [answer for answer in short_answers if answer.start >= 0]
    if not with_tokens:
        return NO_SPAN
    if config.release_compatible:
        return Span(with_tokens[0].start, with_tokens[-1].end)
    return Span(min(a.start for a in with_tokens), max(a.end for a in with_tokens))
