"""Splits a page into overlapping windows, with the answer's labels in each."""

import bisect
import dataclasses

from .config import ANSWER_TYPES
from .pages import NO_ANSWER, Answer

__all__ = ["Window", "cut_windows", "has_answer"]


@dataclasses.dataclass(frozen=True)
class Window:
    """A part of a page's tokens.

    Attributes:
        first, end: int. Its tokens are `[first, end)`.
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
    """The windows of a page, which cover all of its tokens.

    In the release, a stride that is larger than a window's part of the page leaves gaps between
    windows, and the last window may be empty. The labels are those of the first annotation;
    training files have just one.

    Args:
        page: a `Page` with tokens.
        config: an `NqInputConfig`.

    Returns:
        list of `Window`.
    """
    # Besides the page, there are CLS, the question, and SEP after each part.
    capacity = config.long_seq_length - len(page.input_question_ids) - 3
    num_tokens = len(page.token_ids)
    stride = config.stride if config.release_compatible else min(config.stride, capacity)
    num_strides = max(0, -(-(num_tokens - capacity) // stride))
    answer = page.answers[0] if page.answers else dataclasses.replace(NO_ANSWER, answer_type=-1)
    find = _ends_in_window if config.release_compatible else _ends_on_page
    windows = []
    for first in range(0, num_strides * stride + 1, stride):
        end = min(first + capacity, num_tokens)
        ends = [find(page.token_pos, span, first, end) for span in (answer.long, answer.short)]
        answer_type = _window_type(answer, *ends, config)
        windows.append(Window(first, end, *ends, answer_type))
    return windows


def has_answer(window):
    """Whether a window counts as an example with an answer."""
    return window.answer_type > ANSWER_TYPES["none"]


def _ends_in_window(token_pos, span, first, end):
    """The window's first token of a span's first word, and its last token of the last word.

    As in the release, a word that is cut by the window's border counts as an end, and a word
    without tokens, such as a dropped tag, does not.
    """
    words = token_pos[first:end]
    start_word, last_word = span.start, span.end - 1
    start = words.index(start_word) if start_word in words else None
    last = len(words) - 1 - words[::-1].index(last_word) if last_word in words else None
    return start, last


def _ends_on_page(token_pos, span, first, end):
    """First and last token of the words of a span; None for an end outside the window."""
    tokens = bisect.bisect_left(token_pos, span.start), bisect.bisect_left(token_pos, span.end) - 1
    if span.start < 0 or tokens[0] > tokens[1]:
        return None, None
    return tuple(token - first if first <= token < end else None for token in tokens)


def _window_type(answer: Answer, long, short, config):
    """The answer type of a window: the page's, if the answer begins or ends in the window."""
    shows_long, shows_short = long != (None, None), short != (None, None)
    shows_either, as_released = shows_long or shows_short, config.release_compatible
    none, answer_type = ANSWER_TYPES["none"], answer.answer_type
    if answer_type in (ANSWER_TYPES["yes"], ANSWER_TYPES["no"]):
        return answer_type if shows_either or as_released else none
    if answer_type == ANSWER_TYPES["short"] and not shows_short:
        return ANSWER_TYPES["long"] if shows_long and not as_released else none
    return answer_type if shows_either or answer_type < 0 else none
