"""A picture of a pre-training and of what fine-tuning made of it."""

from etcmodel import atomic_files
from etcmodel.pictures import charts

__all__ = ["draw"]

_PRETRAINING = {"mlm_accuracy": "masked words", "cpc_accuracy": "masked sentences"}
_FINE_TUNING = {"f1": "F1 of answers", "sp_f1": "F1 of supporting facts"}


def draw(path, *, training, held_out, fine_tunings):
    """Writes a PNG file of four panels over training steps; it appears when complete.

    Args:
        path: str or path-like.
        training: list of dict. "step", "mlm_accuracy", "cpc_accuracy" and "cpc_chance" of the
            batches that were learned from.
        held_out: list of dict, the same of other text.
        fine_tunings: dict of names to lists of dict, with "step", "f1" and "sp_f1".
    """
    panels = []
    for name, subject in _PRETRAINING.items():
        lines = [_line(held_out, name, "held-out text"), _line(training, name, "training batches")]
        if name == "cpc_accuracy":
            lines.append(_line(held_out, "cpc_chance", "by chance", is_reference=True))
        panels.append(_chart(f"Accuracy, {subject}", "step of pre-training", lines))
    for name, title in _FINE_TUNING.items():
        lines = [_line(rows, name, label) for label, rows in fine_tunings.items()]
        panels.append(_chart(title, "step of fine-tuning", lines))
    with atomic_files.new_file(path) as unfinished:
        charts.save_png(panels, unfinished)


def _chart(title, x_label, lines):
    return charts.Chart(f"{title}, % (higher is better)", x_label, tuple(lines), floor=0)


def _line(rows, name, label, **style):
    return charts.Line(label, tuple((row["step"], 100 * row[name]) for row in rows), **style)
