"""The best spans in a window of text, by the logits of their ends; without TensorFlow."""

from typing import NamedTuple

import numpy as np

from etcmodel.text import targets


def text_of(value):
    """The str of a string feature, which is bytes in an evaluation and str at prediction.

    >>> from etcmodel import finetuning
    >>> finetuning.text_of(b"caf\\xc3\\xa9"), finetuning.text_of("caf\\xe9")
    ('café', 'café')
    """
    value = np.ravel(value)[0]
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


SPAN_LABELS = ("labels/starts", "labels/ends")
WINDOW_PLACES = ("token_starts", "token_ends")


class Span(NamedTuple):
    """A span of a window.

    Attributes:
        text: str.
        start, end: int. The span's characters in the window's text.
        logit: float. The sum of both logits.
        probability: float. The product of the ends' probabilities among the window's tokens.
    """

    text: str
    start: int
    end: int
    logit: float
    probability: float


def best_spans(
    start_logits, end_logits, places, text, *, max_length=30, num_best=20, may_start=None
):
    """The best spans among pairs of the best starts and the best ends, and single tokens.

    Args:
        start_logits, end_logits: float [num_tokens].
        places: two int [num_tokens]. The characters `text[start:end]` of each token; -1 for tokens
            that may not be part of a span.
        text: str.
        max_length: int. Maximum number of tokens in a span.
        num_best: int. Number of starts, ends, and spans to consider.
        may_start: bool [num_tokens]. Tokens that may be the first one of a span. None: all.
    Returns:
        list of `Span`, the best first; ties are in text order.
    """
    (tokens,) = np.nonzero(places[0] >= 0)
    logits = [np.asarray(x, np.float64)[tokens] for x in (start_logits, end_logits)]
    totals = sum(np.logaddexp.reduce(x) for x in logits)
    allowed = np.flatnonzero(np.ones(len(tokens)) if may_start is None else may_start[tokens])
    firsts = allowed[np.argsort(-logits[0][allowed], kind="stable")[:num_best]]
    lasts = np.argsort(-logits[1], kind="stable")[:num_best]
    firsts, lasts = np.sort(firsts), np.union1d(firsts, lasts)
    lengths = tokens[lasts] - tokens[firsts][:, np.newaxis] + 1
    rows, columns = np.nonzero((lengths >= 1) & (lengths <= max_length))
    firsts, lasts = firsts[rows], lasts[columns]
    scores = logits[0][firsts] + logits[1][lasts]
    order = np.argsort(-scores, kind="stable")[:num_best]
    return [
        Span(text[start:end], int(start), int(end), float(score), float(np.exp(score - totals)))
        for start, end, score in zip(
            places[0][tokens[firsts[order]]],
            places[1][tokens[lasts[order]]],
            scores[order],
            strict=True,
        )
    ]


def window_places(batch, number):
    """The characters of each token in one of the texts: int64 [num_rows, 2, long_len].

    Args:
        batch: `text.encoding.ProcessedBatch`, of one example, not packed.
        number: int. The text, by its number in the document. Tokens that are not of it have -1.
    """
    places = np.full([len(batch.encodings), 2, batch.long_shape[1]], -1, np.int64)
    for row, encoding in zip(places, batch.encodings, strict=True):
        is_text = encoding.texts == number
        row[:, : len(is_text)] = np.where(is_text, encoding.offsets.T, -1)
    return places


def span_labels(answers, places):
    """The labels of a window: dict of `SPAN_LABELS` to list of 0 and 1.

    Args:
        answers: iterable of (start, end), characters of the text. See `targets.span_ends`.
        places: int [2, num_tokens]. As in `window_text`.
    """
    return dict(zip(SPAN_LABELS, targets.span_ends(answers, places).tolist(), strict=True))


def window_text(text, places):
    """The features that `spans_of_window` needs to find spans in a window of a text.

    Args:
        text: str. The whole text.
        places: int [2, num_tokens]. The characters of each token; -1 for tokens of another text.
    Returns:
        dict of lists: `text`, one str, the window's part of the text; `text_start`, one int, its
        first character; `token_starts` and `token_ends`, the characters of each token in that part.
    """
    first = int(places[0][places[0] >= 0].min())
    starts, ends = np.where(places >= 0, places - first, -1).tolist()
    found = {"text": [text[first : int(places[1].max())]], "text_start": [first]}
    return {**found, **dict(zip(WINDOW_PLACES, (starts, ends), strict=True))}


def spans_of_window(output, max_length, num_best=20):
    """The `best_spans` of a window, with characters of the whole text: list of `Span`.

    Args:
        output: dict with the logits `start` and `end`, float [num_tokens], and the features of
            `window_text`. With `max_context`, 0/1 [num_tokens], only tokens with 1 start a span.
        max_length: int. Tokens of the longest span.
        num_best: int. As in `best_spans`.
    """
    start, end, *places = (np.ravel(output[name]) for name in ("start", "end", *WINDOW_PLACES))
    found = best_spans(
        start,
        end,
        places,
        text_of(output["text"]),
        max_length=max_length,
        num_best=num_best,
        may_start=np.ravel(output["max_context"]) > 0 if "max_context" in output else None,
    )
    first = int(np.ravel(output["text_start"])[0])
    return [span._replace(start=first + span.start, end=first + span.end) for span in found]
