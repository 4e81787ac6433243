"""A plot of precision, recall and F1 of the long and the short answers by threshold."""

import math

from etcmodel import atomic_files
from etcmodel.pictures import charts

from .evaluate import _f1, curve

__all__ = ["plot_curves"]


def plot_curves(long, short, path):
    """Writes a PNG file with a panel for each kind of answer; the file appears when complete.

    Args:
        long, short: lists of `evaluate.Verdict`.
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
