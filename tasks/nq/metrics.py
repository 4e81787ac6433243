"""Decodes outputs to predictions, checks, measures and plots them."""

import contextlib
import dataclasses
import math
import numbers
from typing import NamedTuple

import numpy as np

from etcmodel import atomic_files
from etcmodel.pictures import charts
from etcmodel.preprocessing.json_fields import Fields
from etcmodel.shown_values import shown

from .config import ANSWER_TYPES
from .examples import NO_SPAN, YES_NO_ANSWERS, Span, are_same_sets, example_id_of, span_of

__all__ = [
    "NO_PREDICTION",
    "RECALL_TARGETS",
    "PageOutputs",
    "Prediction",
    "Verdict",
    "best_threshold_metrics",
    "curve",
    "gather_pages",
    "generate_predictions",
    "metrics",
    "metrics_ignoring_scores",
    "parse_predictions",
    "plot_curves",
    "recall_at_precision",
    "verdicts",
    "words_of",
]

# Decodes the outputs for windows to Natural Questions' prediction format.
#
# The best positions of all windows of a page are mapped to words of the page with comparable
# scores, and a span of words is chosen among them. The score of a span is the sum of the scores of
# its ends.
#
# Differences from the release (`release_compatible=True` reproduces it):
# - The score of a position is its logit less the one of the CLS token ("no answer here"). There it
#   is their ratio, which has no meaning when a logit is negative.
# - The answer's type is the one of the window in which the long answer starts, and the score of a
#   yes or no is the long answer's. There they are those of the page's last window, and of the short
#   answer that is not given.
# - A span ends after it starts, and a short one has at most `max_short_answer_len` words: where the
#   chosen ends make no such span, the best pair that does is taken. There they change places.
# - The type "long" means that there is no short answer. There that goes into a misspelled field.
# - 'joint-exhaustive' gives no short answer where none lies within the long one. There it falls
#   back to the best start and the best end, in either order, and also where a score is negative.
# - A page where no span is possible has no answer. There 'joint' answers with the page's first word
#   and the score 0 if there is no end, and takes that word for a start that is missing.
# - Of positions with equal scores the first one is taken. There the best start, and the best end
#   where it is chosen for itself, is the one furthest down the page.


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
        if method == "joint" and not len(ends.words):
            return Scored(0.0, 0, 0, 0)  # The page's first word.
        if method == "joint":
            starts = _or_first_word(starts)
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
    """`ends`, or the page's first word, with score 0, if there are none."""
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


def _joint_exhaustive(starts, ends, max_len, no_negative=False):
    """The first of the best pairs (of scores from 0 on); None if there is none."""
    fits = _is_span(starts.words[:, np.newaxis], ends.words, max_len)  # [starts, ends]
    if no_negative:
        fits &= (starts.scores[:, np.newaxis] >= 0) & (ends.scores >= 0)
    if not fits.any():
        return None
    scores = np.where(fits, starts.scores[:, np.newaxis] + ends.scores, -np.inf)
    return _scored(starts, ends, *np.unravel_index(int(np.argmax(scores)), scores.shape))


def _scored(starts, ends, start, end):
    score = starts.scores[start] + ends.scores[end]
    words = int(starts.words[start]), int(ends.words[end])
    return Scored(float(score), *words, int(starts.windows[start]))


# Predictions in the official format of Natural Questions, checked as the official scorer does.
#
# Source: `read_prediction_json` of the scorer (`nq_eval`) that comes with Kwiatkowski et al. 2019.


_FORMAT = "The predictions are not in the official format of Natural Questions: "


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The prediction for one example.

    Attributes:
        long: `Span`, `NO_SPAN` for none.
        long_score, short_score: float.
        short: tuple of `Span`s, without missing ones.
        yes_no: str. 'NONE', 'YES' or 'NO'; with the latter two, there are no short spans.
    """

    long: Span
    long_score: float
    short: tuple
    short_score: float
    yes_no: str


# No answer, and below every threshold.
NO_PREDICTION = Prediction(NO_SPAN, -math.inf, (), -math.inf, "NONE")


def parse_predictions(predictions):
    """Checks predictions.

    Args:
        predictions: {"predictions": [{"example_id", "long_answer", "long_answer_score",
            "short_answers", "short_answers_score", "yes_no_answer"}, …]}. Missing answers mean no
            answer; the scores are required.

    Returns:
        dict from example id to `Prediction`.

    Raises:
        ValueError: names the prediction and the field that is malformed; also for a yes or no
            together with a short span, and for a second prediction of an example.
    """
    raws = predictions.get("predictions") if isinstance(predictions, dict) else None
    if not isinstance(raws, list | tuple):
        raise ValueError(
            f"{_FORMAT}it is an object with a list `predictions`. Received: {shown(predictions)}"
        )
    parsed = {}
    for number, raw in enumerate(raws, start=1):
        try:
            example_id, prediction = example_id_of(raw), _prediction(raw)
        except ValueError as error:
            raise ValueError(f"{_FORMAT}prediction {number}: {error}") from error
        if example_id in parsed:
            raise ValueError(f"There are two predictions for the example {example_id}.")
        parsed[example_id] = prediction
    return parsed


def _prediction(raw):
    spans = raw.get("short_answers", [])
    if not isinstance(spans, list | tuple):
        raise _error(raw, "short_answers", "must be a list of objects")
    short = tuple(_span(raw, "short_answers", span) for span in spans)
    yes_no = raw.get("yes_no_answer", "NONE")
    if not isinstance(yes_no, str) or yes_no.upper() not in YES_NO_ANSWERS:
        raise _error(raw, "yes_no_answer", "must be yes, no or none")
    prediction = Prediction(
        long=_span(raw, "long_answer", raw["long_answer"]) if "long_answer" in raw else NO_SPAN,
        long_score=_score(raw, "long_answer_score"),
        short=tuple(span for span in short if span.exists),
        short_score=_score(raw, "short_answers_score"),
        yes_no=yes_no.upper(),
    )
    if prediction.yes_no != "NONE" and prediction.short:
        raise _error(raw, "yes_no_answer", "must be none where there is a short answer")
    return prediction


def _span(raw, field, value):
    try:
        return span_of(value)
    except ValueError as error:
        raise _error(raw, field, str(error)) from error


def _score(raw, field):
    score = raw.get(field)
    if isinstance(score, numbers.Real) and not isinstance(score, bool):
        with contextlib.suppress(OverflowError):
            if not math.isnan(score):
                return float(score)
    raise _error(raw, field, "must be there and be a number")


def _error(raw, field, problem):
    return Fields(example_id_of(raw), raw).error(field, problem, raw.get(field))


# The official metrics of Natural Questions: precision, recall and F1 of long and short answers.
#
# Source: Kwiatkowski et al. 2019, "Natural Questions: a Benchmark for Question Answering Research",
# section 5. A question has an answer if enough annotators gave one; a prediction is then right if
# it equals that of any annotator. Two spans are equal if their bytes or their tokens are; short
# answers are compared as sets. This is what the official scorer (`nq_eval`) does.


RECALL_TARGETS = (0.5, 0.75, 0.9)


class Verdict(NamedTuple):
    """Whether gold and prediction of one example have an answer, and whether it is right."""

    gold_has_answer: bool
    predicted: bool
    correct: bool
    score: float


def metrics(gold, predictions):
    """All official metrics; see `best_threshold_metrics` and `metrics_ignoring_scores`.

    Includes `mean-best-threshold-f1`, over long and short answers, which selects the paper's model.

    Args:
        gold, predictions: see `verdicts`.

    Returns:
        dict of str to float.

    Raises:
        ValueError: as in `verdicts`.
    """
    long, short = (list(by_id.values()) for by_id in verdicts(gold, predictions))
    named = best_threshold_metrics(long, short)
    f1s = named["long-best-threshold-f1"], named["short-best-threshold-f1"]
    return {
        "mean-best-threshold-f1": sum(f1s) / 2,
        **named,
        **metrics_ignoring_scores(long, short),
    }


def verdicts(gold, predictions, *, long_threshold=2, short_threshold=2):
    """Compares predictions with the annotations.

    Args:
        gold: dict of example id to tuple of `Annotation`.
        predictions: see `parse_predictions`. A missing example counts as predicted to
            have no answer, below every threshold.
        long_threshold, short_threshold: int. Number of annotators who must have given a long
            answer, or a short one (including yes and no), for the example to have one.

    Returns:
        (long, short): dicts of example id to `Verdict`.

    Raises:
        ValueError: if there is no gold example, or one without any annotation; if a prediction is
            malformed, duplicate, or for another example.
    """
    if not gold:
        raise ValueError("There is no gold example to evaluate on.")
    if bare := [example_id for example_id, annotations in gold.items() if not annotations]:
        raise ValueError(
            f"{len(bare)} gold examples have no annotation to compare with, the first has the id "
            f"{bare[0]}."
        )
    parsed = parse_predictions(predictions)
    if strays := [example_id for example_id in parsed if example_id not in gold]:
        raise ValueError(
            f"{len(strays)} predictions are of examples that the gold file lacks, the first has "
            f"the id {strays[0]}."
        )
    long, short = {}, {}
    for example_id, annotations in gold.items():
        prediction = parsed.get(example_id, NO_PREDICTION)
        long[example_id] = _long_verdict(annotations, prediction, long_threshold)
        short[example_id] = _short_verdict(annotations, prediction, short_threshold)
    return long, short


def _long_verdict(annotations, prediction, threshold):
    answers = [note.long_answer for note in annotations if note.long_answer.exists]
    has_gold, predicted = len(answers) >= threshold, prediction.long.exists
    matches = any(prediction.long.is_same(answer) for answer in answers)
    return Verdict(has_gold, predicted, has_gold and predicted and matches, prediction.long_score)


def _short_verdict(annotations, prediction, threshold):
    """Yes or no takes precedence over spans, in predictions and annotations."""
    says_yes_no = prediction.yes_no != "NONE"
    answers = [note for note in annotations if note.short_answers or note.yes_no != "NONE"]
    has_gold, predicted = len(answers) >= threshold, says_yes_no or bool(prediction.short)
    if says_yes_no:
        matches = any(note.yes_no == prediction.yes_no for note in answers)
    else:
        matches = any(are_same_sets(note.short_answers, prediction.short) for note in answers)
    return Verdict(has_gold, predicted, has_gold and predicted and matches, prediction.short_score)


def curve(group):
    """Precision and recall when only predictions above a score threshold count.

    Args:
        group: iterable of `Verdict`.

    Returns:
        list of (threshold, precision, recall), one for each distinct score, from the highest down.
    """
    by_score = sorted(group, key=lambda verdict: -verdict.score)
    num_gold = sum(verdict.gold_has_answer for verdict in by_score)
    points, num_predicted, num_correct = {}, 0, 0
    for verdict in by_score:
        num_predicted += verdict.predicted
        num_correct += verdict.correct
        ratios = _ratio(num_correct, num_predicted), _ratio(num_correct, num_gold)
        points[verdict.score] = ratios  # The last of equal scores includes them all.
    return [(score, *ratios) for score, ratios in points.items()]


def best_threshold_metrics(long, short):
    """Metrics at the threshold with the best F1, and recall at the target precisions.

    Args:
        long, short: lists of `Verdict`.

    Returns:
        dict of `{long,short}-best-threshold{,-f1,-precision,-recall}` and, for each of
        `RECALL_TARGETS`, `{long,short}-{recall,precision}-at-precision>=<target>` to float.
    """
    named = {}
    for kind, group in (("long", long), ("short", short)):
        best = (0.0, 0.0, 0.0, 0.0)
        for threshold, precision, recall in curve(group):
            f1 = _f1(precision, recall)
            if f1 > best[0]:
                best = (f1, precision, recall, threshold)
        for suffix, value in zip(("-f1", "-precision", "-recall", ""), best, strict=True):
            named[f"{kind}-best-threshold{suffix}"] = value
        for target, recall, precision, _ in recall_at_precision(group):
            named[f"{kind}-recall-at-precision>={target:g}"] = recall
            named[f"{kind}-precision-at-precision>={target:g}"] = precision
    return named


def recall_at_precision(group, targets=RECALL_TARGETS):
    """The best recall at each target precision.

    Returns:
        list of (target, recall, precision, threshold), one per target; (target, 0, 0, None) if the
        precision is never reached.
    """
    points = curve(group)
    rows = []
    for target in targets:
        row = (target, 0.0, 0.0, None)
        for threshold, precision, recall in points:
            if precision >= target and recall > row[1]:
                row = (target, recall, precision, threshold)
        rows.append(row)
    return rows


def metrics_ignoring_scores(long, short):
    """Metrics without thresholds: `{long,short}-answer-{n,f1,precision,recall}`."""
    named = {}
    for kind, group in (("long", long), ("short", short)):
        correct = sum(verdict.correct for verdict in group)
        precision = _ratio(correct, sum(verdict.predicted for verdict in group))
        recall = _ratio(correct, sum(verdict.gold_has_answer for verdict in group))
        named[f"{kind}-answer-n"] = len(group)
        named[f"{kind}-answer-f1"] = _f1(precision, recall)
        named[f"{kind}-answer-precision"] = precision
        named[f"{kind}-answer-recall"] = recall
    return named


def _f1(precision, recall):
    return _ratio(2 * precision * recall, precision + recall)


def _ratio(count, total):
    return count / total if total else 0.0


# A plot of precision, recall and F1 of the long and the short answers by threshold.


def plot_curves(long, short, path):
    """Writes a PNG file with a panel for each kind of answer; the file appears when complete.

    Args:
        long, short: lists of `Verdict`.
        path: str.
    """
    groups = {"Long answers": long, "Short answers": short}
    panels = [_chart(title, group) for title, group in groups.items()]
    with atomic_files.new_file(path) as unfinished:
        charts.save_png(panels, unfinished)


def _chart(kind, group):
    points = [point for point in reversed(curve(group)) if math.isfinite(point[0])]
    values = {
        "F1": [(score, _f1(precision, recall)) for score, precision, recall in points],
        "Precision": [(score, precision) for score, precision, _ in points],
        "Recall": [(score, recall) for score, _, recall in points],
    }
    lines = (
        charts.Line(name, tuple((score, 100 * value) for score, value in line))
        for name, line in values.items()
    )
    title = f"{kind}, % (higher is better)"
    return charts.Chart(title, "least score of an answer that counts", tuple(lines), floor=0)
