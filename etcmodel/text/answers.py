"""Decodes answers: from token scores to an answer's text, over all windows of an example.

A model is trained window by window, with a softmax over the tokens of each, so that logits are
comparable only within their window. All windows have the first token ([CLS]) in common, which
stands for "no answer here" (Devlin et al. 2018, arXiv:1810.04805, section 4.3;
`targets.answer_targets`). So a span's score is the sum of its two logits minus those of its
window's first token (Alberti et al. 2019, arXiv:1901.08634, section 3, which the paper's NQ
follows).

Tokens are pieces of words, so a span of them may begin or end within a word.
"""

import math
from typing import NamedTuple

import numpy as np

from etcmodel.text import characters
from etcmodel.text.documents import QUESTION

__all__ = ["SEPARATORS", "Answer", "are_joined", "best_answer", "widened"]

SEPARATORS = ".,"  # Between digits they are part of a number.


class Answer(NamedTuple):
    """A span of text.

    Attributes:
        content: str. As in the input.
        text, start, end: int. Its characters, `document.texts[text][start:end]`, which may be more
            than those of its tokens: see `best_answer`.
        score: float. The sum of both logits, minus those of the window's first token: the logarithm
            of how much more probable the span is than that the window has no answer.
        probability: float. The probability of this span, in this window, among all pairs of a first
            and a last token, where "no answer" is one and the same for all windows. For a single
            window it is the product of the two tokens' probabilities.
        row, first, last: int. Its row of the batch and its long tokens there, both inclusive.
    """

    content: str
    text: int
    start: int
    end: int
    score: float
    probability: float
    row: int
    first: int
    last: int


def best_answer(batch, begin_logits, end_logits, example=0, max_tokens=30, whole_words=True):
    """Finds the best answer span of an example, outside of its question.

    Args:
        batch: `ProcessedBatch`.
        begin_logits, end_logits: float [batch, long_len]. Scores of each long token as the first
            and the last one of the answer.
        example: int. Index of the example among those given to the processor.
        max_tokens: int. The most tokens of an answer.
        whole_words: bool. Whether an answer that begins or ends within a word, or a number such as
            1,000, is extended to all of that word: see `widened`.
    Returns:
        `Answer`, the first of the best; None if no token is from a text that may contain it. If its
        score is below 0, "no answer" is more probable.
    Raises:
        ValueError: if there is not one logit per long token, there is no such example, or one of
            its logits is not finite.

    >>> from etcmodel.text.answers import best_answer
    >>> batch = etcmodel.EtcProcessor("vocab.txt")(question="Who wrote it?", documents=["By Jane."])
    >>> is_jane = [[9.0 if token == "jane" else 0.0 for token in batch.encodings[0].tokens]]
    >>> best_answer(batch, is_jane, is_jane).content
    'Jane'
    """
    shape = batch.long_shape
    begin, end = np.asarray(begin_logits), np.asarray(end_logits)
    for name, logits in (("begin_logits", begin), ("end_logits", end)):
        if logits.shape != shape:
            raise ValueError(
                f"`{name}` must have the shape {shape} of the token ids. Received: {logits.shape}"
            )
    windows = batch.windows(example)
    if not windows:
        raise ValueError(f"The batch has no example {example}.")
    pairs = [_above_null(x, begin, end) for x in windows]
    log_total = _log_total(pairs)
    found = (_best_of_window(x, *y, max_tokens) for x, y in zip(windows, pairs, strict=True))
    answers = [answer for answer in found if answer is not None]
    if not answers:
        return None
    best = max(answers, key=lambda answer: answer.score)
    if whole_words:
        text = windows[0].document.texts[best.text]
        start, end = widened(text, best.start, best.end)
        best = best._replace(content=text[start:end], start=start, end=end)
    return best._replace(probability=min(math.exp(best.score - log_total), 1.0))


def widened(text, start, end):
    """Extends a span of characters to whole words.

    A word is a run of letters, digits and accents, with points and commas between digits. Scripts
    that put no spaces between words, such as Chinese or Thai, have none in this sense.

    Args:
        text: str.
        start, end: int. Characters `[start, end)`.
    Returns:
        (start, end): int.
    """
    while 0 < start < end and are_joined(text, start):
        start -= 1
    while start < end < len(text) and are_joined(text, end):
        end += 1
    return start, end


def are_joined(text, place):
    """Returns whether the characters before and at a position belong to one word: bool."""
    return _is_of_word(text, place - 1) and _is_of_word(text, place)


def _is_of_word(text, place):
    if characters.is_of_word(text[place]):
        return True
    around = text[max(place - 1, 0) : place + 2]
    return len(around) == 3 and around[1] in SEPARATORS and (around[0] + around[2]).isdecimal()


def _above_null(encoding, begin, end):
    """(begin, end) logits of a window's tokens, float64, minus those of its first one."""
    where = slice(encoding.place, encoding.place + len(encoding.token_ids))
    logits = np.stack([begin[encoding.row, where], end[encoding.row, where]]).astype(np.float64)
    if not np.isfinite(logits).all():
        raise ValueError(f"The logits of row {encoding.row} must be finite. Received: inf or nan")
    return logits - logits[:, :1]


def _log_total(pairs):
    """Logarithm of the sum over all pairs of tokens of all windows; "no answer" counts once."""
    log_sums = [float(np.logaddexp.reduce(x, axis=1).sum()) for x in pairs]
    # Each sum is at least 1, from the pair of the first token with itself, which is taken out.
    others = [x + math.log(-math.expm1(-x)) for x in log_sums if x > 0]
    return float(np.logaddexp.reduce([0.0, *others]))


def _best_of_window(encoding, begin, end, max_tokens):
    texts = np.where(_is_answer_text(encoding), encoding.texts, -1)
    best = None
    for length in range(min(max_tokens, len(texts))):
        stop = len(texts) - length
        scores = begin[:stop] + end[length:]
        is_span = (texts[:stop] >= 0) & (texts[:stop] == texts[length:])
        if is_span.any():
            first = int(np.argmax(np.where(is_span, scores, -np.inf)))
            if best is None or scores[first] > best[0]:
                best = scores[first], encoding.place + first, encoding.place + first + length
    if best is None:
        return None
    score, first, last = best
    span = encoding.char_span(first, last)
    content = encoding.text_of(first, last)
    return Answer(content, *span, float(score), 0.0, encoding.row, first, last)


def _is_answer_text(encoding):
    """Marks tokens of the text, not of the question: bool [num_tokens]."""
    is_question = np.array([x.kind == QUESTION for x in encoding.document.blocks] + [True], bool)
    return ~is_question[encoding.blocks]  # The last one is for special tokens, at -1.
