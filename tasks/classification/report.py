"""The report on classification: predicted beside actual labels.

The baseline predicts the most frequent label for every text; for a regression, the mean.
"""

import collections
import dataclasses
import logging
import statistics

import numpy as np

from etcmodel.finetuning import metrics as metrics_lib
from etcmodel.reports import results

from . import examples, features, metrics
from .config import MULTI_LABEL, REGRESSION, SINGLE_LABEL, ClassificationFeatureOptions

__all__ = ["read_results"]

_OPTIONS = (
    "problem_type",
    "labels",
    "text_field",
    "second_text_field",
    "label_field",
    "id_field",
    "label_separator",
)
_TOLD = {SINGLE_LABEL: "label", MULTI_LABEL: "labels", REGRESSION: "value"}
_TYPES = {SINGLE_LABEL: str, MULTI_LABEL: list, REGRESSION: int | float}
_MOST_CONFUSED = 30  # Maximum number of labels in a confusion matrix.
_MOST_MISTAKES = 10
_LEAST, _MOST = 1e-12, 1 - 1e-12  # Bounds of probabilities, to keep logits finite.


def read_results(given):
    """The `reports.results.Results` of a `Given`, whose options name fields and labels.

    Raises:
        ValueError: if a file is malformed, the labels are not known, or no prediction matches a
            text.
    """
    if "labels" not in given.options:
        raise ValueError("--task=classification also needs --run: its options name the labels.")
    found = {name: given.options[name] for name in _OPTIONS if name in given.options}
    options = ClassificationFeatureOptions(**{**found, "labels": tuple(found["labels"])})
    kind = options.problem_type
    rows = results.read_rows(given.predictions_file, {"id": str, _TOLD[kind]: _TYPES[kind]})
    texts, told = _paired(examples.example_reader(options)(given.eval_gold), rows)
    if not texts:
        raise ValueError(f"{given.predictions_file}: no prediction is of a text of the gold file.")
    gold = [_encoded(x, options) for x in texts]
    logits = np.array([_logits(row, options) for row in told])
    constant = np.tile(_constant(gold, options), [len(gold), 1])
    name, *_ = metrics.BEST_METRICS[kind]
    best = "the mean" if kind == REGRESSION else "the most frequent label"
    items = [_item(x, row[_TOLD[kind]], kind) for x, row in zip(texts, told, strict=True)]
    return results.Results(
        metrics=metrics.metrics(logits, np.array(gold), kind),
        best_metric=name,
        items=tuple(items) if kind != REGRESSION else _by_error(items),
        noun="texts",
        baselines={best: metrics.metrics(constant, np.array(gold), kind)},
        score_name="Squared error" if kind == REGRESSION else "Correct",
        filter_name="Worse half only" if kind == REGRESSION else "Wrong answers only",
        tables=() if kind == REGRESSION else _tables(texts, logits, np.array(gold), options),
    )


def _paired(texts, rows):
    """(texts that have a prediction, their predictions), by id.

    An id with different predictions is of several texts, such as of one customer's; which is whose
    nobody knows, as records are not in the order of the raw file.
    """
    by_id = collections.defaultdict(list)
    for row in rows:
        by_id[row["id"]].append(row)
    unclear = {name for name, told in by_id.items() if any(row != told[0] for row in told)}
    if unclear:
        logging.warning(
            "%d ids, such as %r, have several different predictions. Their texts are left out: the "
            "scores are of the others. Other ids (--id_field), or none, avoid this.",
            len(unclear),
            min(unclear),
        )
    found = [x for x in texts if x.example_id in by_id and x.example_id not in unclear]
    return found, [by_id[x.example_id][0] for x in found]


def _tables(texts, logits, gold, options):
    """The tables of a classifier: scores by label, confusion matrix, most confident mistakes."""
    kind, labels = options.problem_type, options.labels
    predicted, given = metrics.decisions(logits, gold, kind)
    scores = metrics_lib.scores_by_label(predicted, given)
    rows = tuple(
        (name, *(f"{100 * x:.1f} %" for x in values), f"{told:,}", f"{there:,}")
        for name, values, told, there in zip(
            labels, scores.T, predicted.sum(axis=0), given.sum(axis=0), strict=True
        )
    )
    columns = ("label", "precision", "recall", "F1", "predicted", "actual")
    by_label = results.Table("By label", "Higher is better.", columns, rows)
    mistakes = _mistakes(texts, logits, predicted, given, options)
    if kind == MULTI_LABEL or len(labels) > _MOST_CONFUSED:
        return (by_label, mistakes)
    counts = given.T.astype(int) @ predicted.astype(int)
    confusion = results.Table(
        "Confusion matrix",
        "A row for each actual label, a column for each predicted label.",
        ("actual", *labels),
        tuple((x, *(f"{n:,}" for n in row)) for x, row in zip(labels, counts, strict=True)),
    )
    return (by_label, confusion, mistakes)


def _mistakes(texts, logits, predicted, given, options):
    """The wrong decisions with the highest probability."""
    is_multi = options.problem_type == MULTI_LABEL
    shares = metrics_lib.sigmoid(logits) if is_multi else metrics_lib.softmax(logits)
    sure = np.where(predicted, shares, 1 - shares)
    is_mistake = (predicted != given) if is_multi else (predicted & ~given)
    places = sorted(zip(*np.nonzero(is_mistake), strict=True), key=lambda x: -sure[x])
    rows = tuple(
        (
            texts[text].example_id,
            options.labels[label] if predicted[text, label] else f"not {options.labels[label]}",
            _shown(texts[text].label),
            f"{100 * sure[text, label]:.1f} %",
            results.clipped(texts[text].text)[:120],
        )
        for text, label in places[:_MOST_MISTAKES]
    )
    note = (
        "The wrong predictions with the highest probability." if rows else "There are no mistakes."
    )
    columns = ("id", "predicted", "actual", "probability", "text")
    return results.Table("Most confident mistakes", note, columns, rows)


def _encoded(text, options):
    """The label of a text in the form that `metrics.metrics` takes."""
    if text.label is None:
        raise ValueError(
            f"example {text.example_id!r}: field `{options.label_field}` is missing, and a "
            "comparison needs it. Give --eval_gold with labels."
        )
    found = features.encoded_label(text, options)
    return found if options.problem_type == MULTI_LABEL else found[0]


def _logits(row, options):
    if options.problem_type == REGRESSION:
        return [row["value"]]
    try:
        shares = [float(row["probabilities"][label]) for label in options.labels]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"prediction {row['id']!r}: `probabilities` must have a number for each of the run's "
            f"labels, {list(options.labels)}. Give --predictions of that run."
        ) from error
    shares = np.clip(shares, _LEAST, _MOST)
    is_multi = options.problem_type == MULTI_LABEL
    return np.log(shares) - (np.log1p(-shares) if is_multi else 0)


def _constant(gold, options):
    """The logits of the best constant prediction: float [num_outputs]."""
    if options.problem_type == REGRESSION:
        return [statistics.fmean(gold)]
    if options.problem_type == MULTI_LABEL:
        return np.where(np.mean(gold, axis=0) > 0.5, 1.0, -1.0)
    shares = np.bincount(gold, minlength=len(options.labels)) / len(gold)
    return np.log(np.clip(shares, _LEAST, _MOST))


def _item(text, told, kind):
    is_right, score = told == text.label, None
    if kind == REGRESSION:
        score = (told - text.label) ** 2
    elif kind == MULTI_LABEL:
        is_right = set(told) == set(text.label)
    return results.Item(
        key=text.example_id,
        question=results.clipped(text.text)[:120],
        prediction=_shown(told),
        gold=_shown(text.label),
        is_right=is_right,
        score=float(is_right) if score is None else score,
        passages=tuple(map(results.plain_passage, filter(None, (text.text, text.second_text)))),
    )


def _shown(told):
    if isinstance(told, str):
        return told
    return f"{told:.4g}" if isinstance(told, int | float) else ", ".join(told) or "(no label)"


def _by_error(items):
    """Marks the half with the smaller errors as right."""
    middle = statistics.median(item.score for item in items)
    return tuple(dataclasses.replace(item, is_right=item.score <= middle) for item in items)
