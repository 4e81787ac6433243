"""The official metrics of Natural Questions: precision, recall and F1 of long and short answers.

Source: Kwiatkowski et al. 2019, "Natural Questions: a Benchmark for Question Answering Research",
section 5. A question has an answer if enough annotators gave one; a prediction is then right if it
equals that of any annotator. Two spans are equal if their bytes or their tokens are; short answers
are compared as sets. This is what the official scorer (`nq_eval`) does.
"""

from typing import NamedTuple

from .predictions import NO_PREDICTION, parse_predictions
from .spans import are_same_sets

__all__ = [
    "RECALL_TARGETS",
    "Verdict",
    "best_threshold_metrics",
    "curve",
    "metrics",
    "metrics_ignoring_scores",
    "recall_at_precision",
    "verdicts",
]

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
        predictions: see `predictions.parse_predictions`. A missing example counts as predicted to
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
