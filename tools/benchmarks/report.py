"""The figures of `benchmark` as a table, JSON and a picture."""

import os

from etcmodel import atomic_files, extras

__all__ = ["table", "write"]

_COLUMNS = ("long", "global", "phase", "model", "seconds", "spread", "tokens/s", "share", "peak GB")


def table(figures):
    """A Markdown table, one line a figure. `share` is of this machine's matrix-product speed."""
    rows = [_COLUMNS, ["---"] * len(_COLUMNS), *map(_row, figures)]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _row(figure):
    seconds = figure["seconds_all"]
    share = figure.get("share")
    return [
        figure["length"],
        figure["global_length"],
        figure["phase"],
        figure["model"],
        f"{figure['seconds']:.3g}",
        f"{min(seconds):.3g}–{max(seconds):.3g}",
        f"{figure['tokens_per_second']:.0f}",
        "" if share is None else f"{share:.2f}",
        f"{figure['peak_bytes'] / 1e9:.1f}",
    ]


def write(figures, directory):
    """Writes results.json and results.png; each appears only when it is complete."""
    atomic_files.write_json(os.path.join(directory, "results.json"), figures)
    with atomic_files.new_file(os.path.join(directory, "results.png")) as picture:
        _plot(figures, picture)


def _plot(figures, path):
    """Time and memory against length, forward and training."""
    with extras.needed("plots"):
        import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    measures = {"seconds": ("seconds", 1), "peak_bytes": ("peak memory, GB", 1e-9)}
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8), sharex=True)
    models = list(dict.fromkeys(entry["model"] for entry in figures))
    for row, (measure, (label, scale)) in zip(axes, measures.items(), strict=True):
        for axis, phase in zip(row, ("forward", "train"), strict=True):
            for index, model in enumerate(models):
                points = [
                    (entry["length"], entry[measure] * scale)
                    for entry in figures
                    if entry["phase"] == phase and entry["model"] == model
                ]
                if points:
                    axis.plot(*zip(*points, strict=True), "o-", color=f"C{index}", label=model)
            axis.set(xscale="log", yscale="log", ylabel=label, title=phase, xlabel="long length")
            axis.set_xscale("log", base=2)
            axis.grid(alpha=0.3)
            if axis.has_data():
                axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110, format="png")
    pyplot.close(figure)
