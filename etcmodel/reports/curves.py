"""The charts of a training run, one per measure."""

import math

from etcmodel.pictures import charts, metric_names

__all__ = ["charts_of_run"]

_TRAINING, _EVALUATION = "training", "evaluation"
# In this order, after the evaluation's scores and losses.
_MACHINERY = ("learning_rate", "gradient_norm", "examples_per_second")
_MOST_POINTS = 400  # More than a chart has pixels would only make the page larger.


def charts_of_run(train_rows, eval_rows):
    """Charts of the metrics by step: scores first, then losses, then training statistics.

    Metrics of the same measure share a chart, across subjects and across the two sources.
    Non-finite values are left out.

    Args:
        train_rows, eval_rows: lists of dict, "step" and metrics.
    Returns:
        list of `charts.Chart`.
    """
    sources = {_TRAINING: train_rows, _EVALUATION: eval_rows}
    found = {}  # Of a title and whether it is a share to (source, metric, points).
    for source, rows in sources.items():
        for name in dict.fromkeys(name for row in rows for name in row if name != "step"):
            metric = metric_names.describe(name)
            if metric.is_setting:
                continue
            scale = 100 if metric.is_share else 1
            values = ((row["step"], row.get(name)) for row in rows)
            points = [(step, scale * value) for step, value in values if _is_finite(value)]
            if points:
                found.setdefault(metric.title, []).append((source, metric, _thinned(points)))
    titles = sorted(found, key=lambda title: _rank(found[title]))
    return [_chart(title, found[title]) for title in titles]


def _is_finite(value):
    return isinstance(value, int | float) and math.isfinite(value)


def _rank(lines):
    """Sort key: scores, losses, and last the training statistics."""
    metrics = [metric for _, metric, _ in lines]
    machinery = [metric_names.describe(name).measure for name in _MACHINERY]
    if metrics[0].measure in machinery:
        return 2, machinery.index(metrics[0].measure)
    is_loss = metrics[0].measure == "Loss"
    return (1 if is_loss else 0), 0


def _chart(title, lines):
    sources = {source for source, _, _ in lines}
    labels = [_label(source, metric, len(sources) > 1) for source, metric, _ in lines]
    if len(lines) == 1 and not lines[0][1].subject:
        labels = [""]  # The title is enough.
    made = (
        charts.Line(label, tuple(points), is_reference=metric.is_reference)
        for label, (_, metric, points) in zip(labels, lines, strict=True)
    )
    is_share = lines[0][1].is_share
    return charts.Chart(title, "training step", tuple(made), floor=0 if is_share else None)


def _label(source, metric, is_told):
    subject = metric.subject or ("" if is_told else "all")
    return ", ".join(filter(None, [subject, source if is_told else ""]))


def _thinned(points):
    step = -(-len(points) // _MOST_POINTS)
    kept = points[::step]
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]
