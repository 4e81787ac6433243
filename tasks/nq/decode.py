"""Decodes the outputs for windows to Natural Questions' prediction format.

The best positions of all windows of a page are mapped to words of the page with comparable scores,
and a span of words is chosen among them. The score of a span is the sum of the scores of its ends.

Differences from the release (`release_compatible=True` reproduces it):
- The score of a position is its logit less the one of the CLS token ("no answer here"). There it is
  their ratio, which has no meaning when a logit is negative.
- The answer's type is the one of the window in which the long answer starts, and the score of a yes
  or no is the long answer's. There they are those of the page's last window, and of the short
  answer that is not given.
- A span ends after it starts, and a short one has at most `max_short_answer_len` words: where the
  chosen ends make no such span, the best pair that does is taken. There they change places.
- The type "long" means that there is no short answer. There that goes into a misspelled field.
- 'joint-exhaustive' gives no short answer where none lies within the long one. There it falls back
  to the best start and the best end, in either order, and also where a score is not positive.
- A page where no span is possible has no answer. There 'joint' takes the page's first word, with
  the score 0, for a start or an end that is missing.
- Of positions with equal scores the first one is taken. There the best start, and the best end
  where it is chosen for itself, is the one furthest down the page.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from .config import ANSWER_TYPES, SPAN_SELECTION_METHODS

__all__ = [
    "SPAN_SELECTION_METHODS",
    "PageOutputs",
    "generate_predictions",
    "gather_pages",
    "words_of",
]

POSITIONS = ("sa_start", "sa_end", "la_start", "la_end")

_YES_NO = {ANSWER_TYPES["yes"]: "yes", ANSWER_TYPES["no"]: "no"}


class Ends(NamedTuple):
    """Possible ends of a span on a page: `scores` float, `words` and `windows` int, all [n]."""

    scores: np.ndarray
    words: np.ndarray
    windows: np.ndarray


class Scored(NamedTuple):
    """A chosen span: its words from `start` to `last`, and the window of its start."""

    score: float
    start: int
    last: int
    window: int


@dataclasses.dataclass(frozen=True)
class PageOutputs:
    """The outputs for the windows of a page: an `Ends` for each of `POSITIONS`, in window order.

    Attributes:
        ends: dict of str to `Ends`.
        answer_type_logits: float [num_windows, 5].
    """

    ends: dict
    answer_type_logits: np.ndarray


def words_of(positions, token_pos):
    """The words of the page that long positions are in; -1 outside of the page."""
    return np.asarray(token_pos)[np.asarray(positions, np.int64)]


def gather_pages(outputs, *, release_compatible=False):
    """Groups the outputs for windows by page.

    Args:
        outputs: iterable of dict of NumPy arrays, one a window (L long tokens, k best):
            unique_ids: int, scalar or [1]; the example's id.
            token_pos: int [L].
            answer_type_logits: float [5].
            <name>_pred, <name>_logit, for each of `POSITIONS`: int and float [k].
            <name>_logit0: float, scalar or [1].
        release_compatible: bool. Divide by the CLS token's logit.

    Returns:
        dict from example id to `PageOutputs`.
    """
    ends_of, types_of = {}, {}
    for output in outputs:
        example_id = int(np.ravel(output["unique_ids"])[0])
        types = types_of.setdefault(example_id, [])
        page_ends = ends_of.setdefault(example_id, {name: [] for name in POSITIONS})
        for name in POSITIONS:
            page_ends[name].append(_ends(name, output, len(types), release_compatible))
        types.append(np.asarray(output["answer_type_logits"], np.float32))
    return {
        example_id: PageOutputs(
            ends={name: Ends(*map(np.concatenate, zip(*e, strict=True))) for name, e in by.items()},
            answer_type_logits=np.stack(types_of[example_id]),
        )
        for example_id, by in ends_of.items()
    }


def _ends(name, output, window, release_compatible):
    """The `Ends` of one kind in one window."""
    words = words_of(output[f"{name}_pred"], output["token_pos"])
    logits = np.asarray(output[f"{name}_logit"], np.float64)
    null_logit = float(np.ravel(output[f"{name}_logit0"])[0])
    if release_compatible:
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = logits / null_logit
    else:
        scores = logits - null_logit
    on_page = words >= 0
    words = words[on_page]
    return Ends(scores[on_page], words, np.full(len(words), window))


def generate_predictions(outputs, config):
    """Decodes the outputs of a model.

    Args:
        outputs: see `gather_pages`.
        config: a `DecodingConfig`.

    Returns:
        {"predictions": [{"example_id": int, "long_answer": …, …}, …]}, the official format, one
        entry per page; a page without an answer has tokens -1.
    """
    pages = gather_pages(outputs, release_compatible=config.release_compatible)
    return {"predictions": [predict(i, page, config) for i, page in pages.items()]}


def predict(example_id, page, config):
    """The official prediction for one `PageOutputs`."""
    long = _best_span(page, "la", config)
    short = _best_span(page, "sa", config, within=long)
    prediction = {
        "example_id": example_id,
        "long_answer": _span_json(long),
        "long_answer_score": long.score,
        "short_answers": [] if short.start < 0 else [_span_json(short)],
        "short_answers_score": short.score,
        "yes_no_answer": "NONE",
    }
    if config.consider_answer_type and (config.release_compatible or long.start >= 0):
        window = -1 if config.release_compatible else long.window
        answer_type = int(np.argmax(page.answer_type_logits[window]))
        prediction |= _by_answer_type(answer_type, long, config)
    return prediction


def _by_answer_type(answer_type, long, config):
    """Applies the most probable answer type to a prediction."""
    if answer_type in _YES_NO:
        changes = {"yes_no_answer": _YES_NO[answer_type], "short_answers": []}
        return (
            changes if config.release_compatible else changes | {"short_answers_score": long.score}
        )
    if answer_type == ANSWER_TYPES["long"]:
        return {"short_answer" if config.release_compatible else "short_answers": []}
    return {}


def _span_json(span):
    end = span.last + 1 if span.start >= 0 else -1
    return {"start_token": span.start, "end_token": end, "start_byte": -1, "end_byte": -1}


def _best_span(page, name, config, within=None):
    """The best `Scored` span of a page; its words are -1 if there is none.

    Args:
        page: a `PageOutputs`.
        name: 'la' or 'sa', for the long or the short answer.
        config: a `DecodingConfig`.
        within: the long answer, in which 'joint-exhaustive' searches for the short one.
    """
    starts, ends = page.ends[f"{name}_start"], page.ends[f"{name}_end"]
    max_len = config.max_short_answer_len if name == "sa" else None
    method, best = config.span_selection_method, _first_best
    if config.release_compatible:
        best = _furthest_best
        if method == "joint":
            starts, ends = _or_first_word(starts), _or_first_word(ends)
    nothing = Scored(0.0, -1, -1, 0)
    if not (len(starts.words) and len(ends.words)):
        return nothing
    if method == "joint-exhaustive":
        inner = [_inside(positions, within) for positions in (starts, ends)]
        span = _joint_exhaustive(*inner, max_len, config.release_compatible)
    else:
        span = (_joint if method == "joint" else _disjoint)(starts, ends, max_len, best)
    if span is None and config.release_compatible:
        return _disjoint_in_order(starts, ends)
    if span is None and method != "joint-exhaustive":
        span = _joint_exhaustive(starts, ends, max_len)
    return span or nothing


def _or_first_word(ends):
    """`ends`, or the page's first word if there are none."""
    return ends if len(ends.words) else Ends(np.zeros(1), np.zeros(1, int), np.zeros(1, int))


def _first_best(ends):
    """The index of the first of the best scores."""
    return int(np.argmax(ends.scores))


def _furthest_best(ends):
    """The index of the best score, the last on the page in case of a tie."""
    return int(np.lexsort((ends.words, ends.scores))[-1])


def _inside(ends, span):
    """The `ends` whose words are in the `Scored` span; all if it is None."""
    if span is None:
        return ends
    fits = (ends.words >= span.start) & (ends.words <= span.last)
    return Ends(*(values[fits] for values in ends))


def _is_span(starts, ends, max_len):
    """Whether these ends make a span: bool, of the broadcast shape of the words."""
    length = ends - starts + 1
    return (length >= 1) & ((max_len is None) | (length <= (max_len or 0)))


def _joint(starts, ends, max_len, best):
    """The best start, and the first of the best ends for it; None if it has none."""
    start = best(starts)
    fits = _is_span(starts.words[start], ends.words, max_len)
    if not fits.any():
        return None
    return _scored(starts, ends, start, int(np.argmax(np.where(fits, ends.scores, -np.inf))))


def _disjoint(starts, ends, max_len, best):
    """The best start and the best end; None if they make no span."""
    start, end = best(starts), best(ends)
    fits = _is_span(starts.words[start], ends.words[end], max_len)
    return _scored(starts, ends, start, end) if fits else None


def _disjoint_in_order(starts, ends):
    """The best start and the best end of the release, in the order in which they come."""
    span = _scored(starts, ends, _furthest_best(starts), _furthest_best(ends))
    first, last = sorted((span.start, span.last))
    return span._replace(start=first, last=last)


def _joint_exhaustive(starts, ends, max_len, only_positive=False):
    """The first of the best pairs (with positive scores); None if there is none."""
    fits = _is_span(starts.words[:, np.newaxis], ends.words, max_len)  # [starts, ends]
    if only_positive:
        fits &= (starts.scores[:, np.newaxis] > 0) & (ends.scores > 0)
    if not fits.any():
        return None
    scores = np.where(fits, starts.scores[:, np.newaxis] + ends.scores, -np.inf)
    return _scored(starts, ends, *np.unravel_index(int(np.argmax(scores)), scores.shape))


def _scored(starts, ends, start, end):
    score = starts.scores[start] + ends.scores[end]
    words = int(starts.words[start]), int(ends.words[end])
    return Scored(float(score), *words, int(starts.windows[start]))
