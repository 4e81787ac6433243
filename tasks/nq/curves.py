"""A plot of precision, recall and F1 of the long and the short answers by threshold."""

import math

from etcmodel import atomic_files, extras

from .evaluate import curve

__all__ = ["plot_curves"]


def plot_curves(long, short, path):
    """Writes a PNG file with a panel for each kind of answer; it appears when complete.

    Args:
        long, short: lists of `evaluate.Verdict`.
        path: str.
    """
    with extras.needed("plots"):
        from matplotlib import figure  # Slow to import, and only this needs it.

    drawing = figure.Figure(figsize=(10, 4), layout="constrained")
    panels = drawing.subplots(1, 2, sharey=True)
    groups = {"Long answers": long, "Short answers": short}
    for panel, (title, group) in zip(panels, groups.items(), strict=True):
        points = [point for point in curve(group) if math.isfinite(point[0])]
        scores = [score for score, _, _ in points]
        panel.plot(scores, [precision for _, precision, _ in points], label="precision")
        panel.plot(scores, [recall for _, _, recall in points], label="recall")
        panel.plot(scores, [_f1(p, r) for _, p, r in points], label="F1")
        panel.set(title=title, xlabel="least score of a prediction that counts", ylim=(0, 1.02))
        panel.legend()
        panel.grid(alpha=0.3)
    with atomic_files.new_file(path) as unfinished:
        drawing.savefig(unfinished, format="png", dpi=120)


def _f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
