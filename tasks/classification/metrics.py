"""Converts logits to predictions, and computes metrics with the labels in the records."""

import numpy as np

from etcmodel.finetuning import metrics as metrics_lib
from etcmodel.finetuning import text_of

from .config import MULTI_LABEL, REGRESSION, SINGLE_LABEL

__all__ = [
    "BEST_METRICS",
    "MOST_LABELS",
    "by_label",
    "decisions",
    "metrics",
    "names_by_label",
    "prediction",
]

MOST_LABELS = 10  # With more, only the report lists them.

# The metrics that may choose the best checkpoint, and whether higher is better; the first one does
# unless another is named.
BEST_METRICS = {
    SINGLE_LABEL: {"accuracy": True, "macro_f1": True, "expected_calibration_error": False},
    MULTI_LABEL: {"micro_f1": True, "macro_f1": True},
    REGRESSION: {"mse": False, "pearson": True, "spearman": True},
}
_BY_LABEL = ("precision", "recall", "f1")


def prediction(output, labels, problem_type):
    """The prediction for one text, from its `example_id` and `logits`, float [num_outputs].

    Returns:
        dict with `id` and the prediction: for a regression, `value`; otherwise `probabilities` by
        label and `label`, or, with several labels, `labels`: those with a probability above 0.5.
    """
    told, logits = {"id": text_of(output["example_id"])}, np.ravel(output["logits"])
    if problem_type == REGRESSION:
        return {**told, "value": float(logits[0])}
    if problem_type == MULTI_LABEL:
        found = metrics_lib.sigmoid(logits)
        told["labels"] = [label for label, p in zip(labels, found, strict=True) if p > 0.5]
    else:
        found = metrics_lib.softmax(logits)
        told["label"] = labels[int(np.argmax(found))]
    return {**told, "probabilities": dict(zip(labels, found.tolist(), strict=True))}


def decisions(logits, labels, problem_type):
    """The predicted and the given labels: two bool [num_examples, num_labels].

    Args:
        logits, labels, problem_type: as in `metrics`, but not a regression.
    """
    if problem_type == MULTI_LABEL:
        return metrics_lib.sigmoid(logits) > 0.5, labels > 0
    every = np.arange(logits.shape[1])
    return logits.argmax(axis=1)[:, None] == every, labels[:, None] == every


def names_by_label(problem_type, names):
    """Names of all that `by_label` may tell of these labels: list of str."""
    if problem_type == REGRESSION or len(names) > MOST_LABELS:
        return []
    return [f"{score}/{name}" for name in names for score in _BY_LABEL]


def by_label(logits, labels, problem_type, names):
    """`precision/…`, `recall/…` and `f1/…` of each label, unless there are too many: dict of float.

    Labels that are neither predicted nor given have none; `macro_f1` is without them, too.

    Args:
        logits, labels, problem_type: as in `metrics`.
        names: sequence of str. The labels.
    """
    if not names_by_label(problem_type, names):
        return {}
    predicted, given = decisions(logits, labels, problem_type)
    occurs = (predicted | given).any(axis=0)
    scores = metrics_lib.scores_by_label(predicted, given)
    return {
        f"{score}/{name}": float(value)
        for name, values, is_there in zip(names, scores.T, occurs, strict=True)
        for score, value in zip(_BY_LABEL, values, strict=True)
        if is_there
    }


def metrics(logits, labels, problem_type):
    """The metrics of a problem type.

    Args:
        logits: float [num_examples, num_outputs].
        labels: int [num_examples]; with several labels, 0/1 [num_examples, num_labels]; for a
            regression, float [num_examples].
        problem_type: str, one of `config.PROBLEM_TYPES`.
    Returns:
        dict of float: `accuracy`, `macro_f1` and `expected_calibration_error`; with several labels,
        `micro_f1` and `macro_f1`; for a regression, `mse`, `pearson` and `spearman`, of which the
        last two are 0 if one side is constant. See `finetuning.metrics`.
    """
    if problem_type == REGRESSION:
        values = logits[:, 0].astype(np.float64)
        return {
            "mse": float(np.mean((values - labels) ** 2)),
            "pearson": metrics_lib.pearson(values, labels),
            "spearman": metrics_lib.pearson(*map(metrics_lib.ranks, (values, labels))),
        }
    micro, macro = metrics_lib.f1_scores(*decisions(logits, labels, problem_type))
    if problem_type == MULTI_LABEL:
        return {"micro_f1": micro, "macro_f1": macro}
    found = metrics_lib.softmax(logits)
    is_right = found.argmax(axis=1) == labels
    return {
        "accuracy": float(is_right.mean()),
        "macro_f1": macro,
        "expected_calibration_error": metrics_lib.expected_calibration_error(
            found.max(axis=1), is_right
        ),
    }
