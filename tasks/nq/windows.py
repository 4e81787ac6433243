"""A page cut into overlapping windows, and what each of them shows of the answer."""

import bisect
import dataclasses

from .config import ANSWER_TYPES
from .pages import NO_ANSWER, Answer
from .raw_data import NO_SPAN

__all__ = ["Window", "cut_windows", "has_answer"]


@dataclasses.dataclass(frozen=True)
class Window:
    """A part of a page's tokens.

    Attributes:
        first, end: int. Its tokens are `first` to before `end`.
        long, short: (int, int). First and last token of the answers, counted from `first`; None
            for an end that is not in the window.
        answer_type: int, of `ANSWER_TYPES`; -1 on a page without annotations.
    """

    first: int
    end: int
    long: tuple
    short: tuple
    answer_type: int


def cut_windows(page, config):
    """The windows of a page, the last of which reaches its end.

    The labels are those of the first annotation; training files have just one.

    Args:
        page: a `Page` with tokens.
        config: an `NqInputConfig`.

    Returns:
        list of `Window`.
    """
    capacity = (
        config.long_seq_length - len(page.question_ids) - 3
    )  # CLS, and SEP after either part.
    num_tokens = len(page.token_ids)
    num_strides = max(0, -(-(num_tokens - capacity) // config.stride))
    answer = page.answers[0] if page.answers else dataclasses.replace(NO_ANSWER, answer_type=-1)
    find = _exact_ends if config.release_compatible else _nearest_ends
    long, short = find(page.token_pos, answer.long), find(page.token_pos, answer.short)
    windows = []
    for first in range(0, num_strides * config.stride + 1, config.stride):
        end = min(first + capacity, num_tokens)
        ends = [_within(span, first, end) for span in (long, short)]
        answer_type = _window_type(answer, *ends, config)
        windows.append(Window(first, end, *ends, answer_type))
    return windows


def has_answer(window):
    """Whether a window is an example of an answer, not of its absence."""
    return window.answer_type > ANSWER_TYPES["none"]


def _exact_ends(token_pos, span):
    """First and last token of a span of words; None where its end word has no token."""
    return _token_of(token_pos, span.start, bisect.bisect_left), _token_of(
        token_pos, span.end - 1, lambda words, word: bisect.bisect_right(words, word) - 1
    )


def _token_of(token_pos, word, find):
    token = find(token_pos, word)
    is_there = 0 <= token < len(token_pos) and token_pos[token] == word
    return token if word >= 0 and is_there else None


def _nearest_ends(token_pos, span):
    """First and last token of the words of a span; (None, None) if none of them has a token."""
    first = bisect.bisect_left(token_pos, span.start)
    last = bisect.bisect_left(token_pos, span.end) - 1
    return (first, last) if span != NO_SPAN and first <= last else (None, None)


def _within(ends, first, end):
    """The ends of a span, counted from the window's start; None for one outside of it."""
    return tuple(
        token - first if token is not None and first <= token < end else None for token in ends
    )


def _window_type(answer: Answer, long, short, config):
    """The answer type that a window shows: the page's where the answer begins or ends in it."""
    shows_long, shows_short = long != (None, None), short != (None, None)
    if answer.answer_type == ANSWER_TYPES["short"]:
        if shows_short:
            return answer.answer_type
        is_long = shows_long and not config.release_compatible
        return ANSWER_TYPES["long"] if is_long else ANSWER_TYPES["none"]
    is_yes_no = answer.answer_type in (ANSWER_TYPES["yes"], ANSWER_TYPES["no"])
    if shows_long or (is_yes_no and config.release_compatible) or answer.answer_type < 0:
        return answer.answer_type
    return ANSWER_TYPES["none"]
