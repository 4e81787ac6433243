"""Converts Natural Questions' typed examples to features, in plain Python.

A page is split into overlapping windows of `long_seq_length` tokens, each preceded by the question
(Ainslie et al. 2020, section 4.2 and appendix C, "Natural Questions").

Differences from the release (`release_compatible=True` reproduces it):
- An answer is labeled with its first and last token in the input. There a long answer has no label
  where its first or last word is an HTML tag that was left out (`include_html_tokens=False`).
- A window is an example of a yes, no or long answer where the long answer begins or ends in it.
  There every window of a page with a yes or no is, also without the text that says so, and a window
  with an end of the long but none of the short answer counts as one without an answer.
- `la_global` is also known where only the long answer's end is in the window.
- The last SEP and the padding are linked to no global token, and the last real global token is the
  last one that is attended to. There it is the padding token behind it.
- With `fixed_blocks` the type ids of the global tokens are those of the blocks. There they are
  those of another layout, and more than there are global tokens.
- The short span reaches from the first short answer on the page to the last one. There it goes
  from the first that is listed to the last that is listed, even backwards.
- An answer's end in a word that the window's border cuts is labeled in the window with the word's
  own first or last token. There any of its tokens will do.
- The windows show all of the page. There a stride that is larger than a window's part of the page
  leaves out what is between two windows, and the last one may show nothing.
- Candidates are taken in the order of the page. There in that of the file (the same in true files).
- A page without tokens in a candidate is an error, and so is a question without tokens.
"""

import bisect
import dataclasses
import functools
import random

from etcmodel import preprocessing
from etcmodel.preprocessing.padding import padded

from . import examples
from .config import ANSWER_TYPES, NqInputConfig
from .examples import NO_SPAN, Span

__all__ = [
    "GLOBAL_FEATURES",
    "LABELS",
    "LONG_FEATURES",
    "PADDING",
    "Answer",
    "ConvertedPage",
    "ConverterFactory",
    "Page",
    "Window",
    "cut_windows",
    "has_answer",
    "make_page",
    "make_windows",
    "make_word_tokenizer",
    "window_features",
]

# The names of features.
LONG_FEATURES = ("token_ids", "sentence_ids", "long_breakpoints")
GLOBAL_FEATURES = ("global_token_ids", "global_breakpoints")
LABELS = ("sa_start", "sa_end", "la_start", "la_end", "answer_type")
# The features of the model, and their padding values.
PADDING = {**dict.fromkeys((*LONG_FEATURES, *GLOBAL_FEATURES), 0), "sentence_ids": -1}

# One tokenized page, before it is split into windows.
#
# Only the contents of top-level candidates are kept: headings and the like between them are never
# part of an answer.


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


# Splits a page into overlapping windows, with the answer's labels in each.


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


# The features of a window: CLS, the question, SEP, a part of the page, SEP, padding.
#
# The global input is a token for CLS and each question token (SEP included) and one for each
# candidate in the window; with `fixed_blocks`, it has one token per block of long tokens.


def window_features(page, window, config):
    """The features of one window, padded (L long tokens, G global tokens).

    Args:
        page: a `Page`.
        window: a `Window` of it.
        config: an `NqInputConfig`.

    Returns:
        (features, num_left_out): num_left_out is the number of candidates without room for their
        global token; features is a dict from str to list of int:
            unique_ids: [1], the example's id; question_ids: all, not padded.
            token_ids: [L]. 0 is padding.
            token_pos, candidate_ids: [L]. Each token's word and candidate on the page; else -1.
            sentence_ids: [L]. The global token that a long token is linked to; -1 for none.
            long_breakpoints, global_breakpoints: [L], [G]. 1 at the last real token.
            global_token_ids, global_type_id: [G]. 0 is padding.
            global_candidate_ids: [G]. The candidate of a global token; else -1.
            global_token_pos_start, global_token_pos_end: [G]. Its first and last word; else 0.
            la_start, la_end, sa_start, sa_end: [1]. Ends of the answers in the long input; 0, the
                CLS token, for an end outside the window.
            la_global: [1]. The global token of the long answer's candidate (or block), or 0.
            answer_type: [1]. Of `ANSWER_TYPES`.
        With `fixed_blocks`, the features of the candidates' words and ids are left out.
    """
    num_before = len(page.input_question_ids) + 2
    part = slice(window.first, window.end)
    token_ids = [config.cls_token_id, *page.input_question_ids, config.sep_token_id]
    token_ids += page.token_ids[part]
    token_ids.append(config.sep_token_id)
    num_real, length = len(token_ids), config.long_seq_length
    outside = [-1] * num_before
    candidate_ids = page.candidate_ids[part]
    make_globals = _block_globals if config.fixed_blocks else _candidate_globals
    sentence_ids, global_features, num_left_out = make_globals(
        page, num_before, candidate_ids, num_real, config
    )
    breakpoints = [0] * length
    breakpoints[num_real - 1] = 1
    labels = _labels(window, num_before)
    features = {
        "unique_ids": [page.example_id],
        "question_ids": page.question_ids,
        "token_ids": padded(token_ids, length),
        "token_pos": padded(outside + page.token_pos[part], length, -1),
        "candidate_ids": padded(outside + candidate_ids, length, -1),
        "sentence_ids": sentence_ids,
        "long_breakpoints": breakpoints,
        **global_features,
        **labels,
        "la_global": [_global_of_answer(labels, sentence_ids, config)],
        "answer_type": [window.answer_type],
    }
    return features, num_left_out


def _labels(window, num_before):
    labels = {}
    for name, span in (("la", window.long), ("sa", window.short)):
        for side, token in zip(("start", "end"), span, strict=True):
            labels[f"{name}_{side}"] = [0 if token is None else num_before + token]
    return labels


def _global_of_answer(labels, sentence_ids, config):
    """For the long answer's first token in the window; the release considers only its start."""
    position = labels["la_start"][0]
    if not config.release_compatible:
        position = position or labels["la_end"][0]
    return max(0, sentence_ids[position]) if position else 0


def _candidate_globals(page, num_before, candidate_ids, num_real, config):
    """Links of the long tokens, global features, number of candidates left out."""
    length, global_length = config.long_seq_length, config.global_seq_length
    in_window = list(dict.fromkeys(candidate_ids))
    kept = in_window[: global_length - num_before]
    num_global = num_before + len(kept)
    number_of = {candidate: num_before + index for index, candidate in enumerate(kept)}
    type_of_candidate, type_of_cls, type_of_question = config.global_token_types
    if config.release_compatible:
        # In the release, SEP and padding are linked to a padding token, which counts as real; or to
        # the last token before the page, where the window shows none of the page.
        missing = min(num_global, global_length - 1) if kept else num_before - 1
        last_global = missing
    else:
        missing, last_global = -1, num_global - 1
    sentence_ids = list(range(num_before))
    sentence_ids += [number_of.get(candidate, missing) for candidate in candidate_ids]
    breakpoints = [0] * global_length
    breakpoints[last_global] = 1
    question = [config.question_global_token_id] * (num_before - 1)
    types = [type_of_cls] + [type_of_question] * len(question) + [type_of_candidate] * len(kept)
    nothing = [0] * num_before
    spans = [page.candidate_words[candidate] for candidate in kept]
    global_token_ids = [config.cls_token_id, *question]
    global_token_ids += [config.candidate_global_token_id] * len(kept)
    global_features = {
        "global_token_ids": padded(global_token_ids, global_length),
        "global_breakpoints": breakpoints,
        "global_type_id": padded(types, global_length),
        "global_candidate_ids": padded([-1] * num_before + kept, global_length, -1),
        "global_token_pos_start": padded(nothing + [s for s, _ in spans], global_length),
        "global_token_pos_end": padded(nothing + [e for _, e in spans], global_length),
    }
    return padded(sentence_ids, length, missing), global_features, len(in_window) - len(kept)


def _block_globals(page, num_before, candidate_ids, num_real, config):
    """The same, with a global token for each block of long tokens."""
    del page
    size, global_length = config.fixed_block_size, config.global_seq_length
    num_blocks = -(-num_real // size)
    breakpoints = [0] * global_length
    breakpoints[num_blocks - 1] = 1
    type_of_block, type_of_cls, type_of_question = config.global_token_types
    types = padded([type_of_block] * num_blocks, global_length)
    if config.release_compatible:
        # There the types are those of the candidates' layout, and of another length.
        types = [type_of_cls] + [type_of_question] * (num_before - 1)
        if candidate_ids:
            types += [type_of_block] * len(set(candidate_ids)) + [0]
        types = types[:global_length] + [0] * (global_length - num_blocks)
    token_ids = [config.candidate_global_token_id] * num_blocks
    global_features = {
        "global_token_ids": padded(token_ids, global_length),
        "global_breakpoints": breakpoints,
        "global_type_id": types,
    }
    sentence_ids = [position // size for position in range(num_real)]
    padding = -1
    if config.release_compatible:  # There the first padding token belongs to a block as well.
        sentence_ids = [*sentence_ids, num_real // size][: config.long_seq_length]
        padding = 0
    return padded(sentence_ids, config.long_seq_length, padding), global_features, 0


# From an example to its windows.


@dataclasses.dataclass(frozen=True)
class ConvertedPage:
    """A converted page.

    Attributes:
        windows: list of dict of str to list of int; see `window_features`.
        num_page_tokens: int. Number of tokens of the page, without the question.
        num_unknown: int. Number of windows without an answer that were dropped.
        num_left_out: int. Number of candidates without room for their global token, over all
            windows.
    """

    windows: list
    num_page_tokens: int
    num_unknown: int
    num_left_out: int


def make_windows(example, config, word_ids):
    """Converts an example.

    Args:
        example: an `NqExample`.
        config: an `NqInputConfig`.
        word_ids: the result of `make_word_tokenizer`.

    Returns:
        A `ConvertedPage`.

    Raises:
        ValueError: if no candidate or the question has a token, or training finds no annotation.
    """
    if config.is_training and not example.annotations:
        raise ValueError(
            f"example {example.example_id}: field `annotations` is empty, and training needs it"
        )
    page = make_page(example, config, word_ids)
    if not page.question_ids and not config.release_compatible:
        raise ValueError(
            f"example {example.example_id}: field `question_text`: {example.question!r} has no "
            "tokens"
        )
    if not page.token_ids:
        raise ValueError(
            f"example {example.example_id}: the page has no token in a top-level candidate of "
            "`long_answer_candidates`"
        )
    rate = 1.0
    if config.is_training:
        unanswerable = page.answers[0].answer_type == 0
        rate = config.unanswerable_rate if unanswerable else config.include_unknown_rate
    # A separate generator for each page, so that choices do not depend on other pages.
    rng = random.Random(f"{config.seed} {page.example_id}")
    all_windows = cut_windows(page, config)
    kept = [window for window in all_windows if has_answer(window) or rng.random() < rate]
    converted = [window_features(page, window, config) for window in kept]
    return ConvertedPage(
        windows=[features for features, _ in converted],
        num_page_tokens=len(page.token_ids),
        num_unknown=len(all_windows) - len(kept),
        num_left_out=sum(num_left_out for _, num_left_out in converted),
    )


# Natural Questions' converter: what a preprocessing worker does with one raw line.


class ConverterFactory(preprocessing.ConverterFactory):
    """Makes the converter; `fields` are arguments of `NqInputConfig`."""

    task = "nq"
    read = staticmethod(examples.read_lines)
    # A page has many windows: this gives shards of similar sizes, as in the release.
    deals_records = True

    def input_config(self, tokenizer):
        return NqInputConfig.for_tokenizer(tokenizer, **self.fields)

    def __call__(self):
        tokenizer = self.tokenizer()
        config = self.input_config(tokenizer)
        word_ids = make_word_tokenizer(tokenizer)  # Caches words across pages.
        return lambda raw: self.convert(raw, config, word_ids)

    def convert(self, raw, config, word_ids):
        converted = make_windows(examples.parse_line(raw), config, word_ids)
        return preprocessing.Converted(
            features=converted.windows,
            counts={
                "windows_without_answer_left_out": converted.num_unknown,
                "candidates_without_global_token": converted.num_left_out,
            },
            lengths={"page_tokens": converted.num_page_tokens},
        )
