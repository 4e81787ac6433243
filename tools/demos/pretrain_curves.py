"""A picture of a pre-training and of what fine-tuning made of it."""

from etcmodel import atomic_files, extras

__all__ = ["draw"]

_PRETRAINING = {"mlm_accuracy": "MLM accuracy", "cpc_accuracy": "CPC accuracy"}
_FINE_TUNING = {"f1": "answer F1", "sp_f1": "supporting-fact F1"}


def draw(path, *, training, held_out, fine_tunings):
    """Writes a PNG file of four panels over training steps; it appears when complete.

    Args:
        path: str or path-like.
        training: list of dict. "step", "mlm_accuracy", "cpc_accuracy" and "cpc_chance" of the
            batches that were learned from.
        held_out: list of dict, the same of other text.
        fine_tunings: dict of names to lists of dict, with "step", "f1" and "sp_f1".
    """
    with extras.needed("plots"):
        from matplotlib import figure  # Slow to import, and only this needs it.

    drawing = figure.Figure(figsize=(10, 7), layout="constrained")
    panels = drawing.subplots(2, 2)
    for panel, (name, title) in zip(panels[0], _PRETRAINING.items(), strict=True):
        _line(panel, training, name, "training batches")
        _line(panel, held_out, name, "held-out text", marker="o")
        if name == "cpc_accuracy":
            _line(panel, held_out, "cpc_chance", "by chance", linestyle="--", color="gray")
        panel.set(title=title, xlabel="step of pre-training")
    for panel, (name, title) in zip(panels[1], _FINE_TUNING.items(), strict=True):
        for label, evaluations in fine_tunings.items():
            _line(panel, evaluations, name, label, marker="o")
        panel.set(title=title, xlabel="step of fine-tuning")
    for panel in panels.flat:
        panel.set_ylim(bottom=0)
        panel.legend()
        panel.grid(alpha=0.3)
    with atomic_files.new_file(path) as unfinished:
        drawing.savefig(unfinished, format="png", dpi=100)


def _line(panel, rows, name, label, **style):
    panel.plot([row["step"] for row in rows], [row[name] for row in rows], label=label, **style)
