"""The figures of `benchmark` as a table, JSON and a picture."""

import os

from etcmodel import atomic_files
from etcmodel.pictures import charts, style

__all__ = ["by_length", "headline", "panels", "table", "write"]

_COLUMNS = ("long", "global", "phase", "model", "seconds", "spread", "tokens/s", "share", "peak GB")
_TOLD_LENGTH = 4096
_MEASURES = (
    ("seconds (lower is better)", "seconds", 1),
    ("peak memory, GB (lower is better)", "peak_bytes", 1e-9),
)
_PHASES = {"forward": "Reading", "train": "Training step"}
_NAMES = {
    "etc": "ETC",
    "etc bfloat16": "ETC in bfloat16",
    "etc checkpointed": "ETC checkpointed",
    "bert": "BERT",
    "hf bert": "HF BERT",
    "hf longformer": "HF Longformer",
    "hf bigbird": "HF BigBird",
    "hf modernbert": "HF ModernBERT",
    "keras-hub bert": "keras-hub BERT",
    "keras-hub fnet": "keras-hub FNet",
    "keras-hub roformer": "keras-hub RoFormer V2",
}


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


def by_length(figures, phase):
    """A Markdown table of seconds and peak memory, one line a length, one column a model."""
    of_phase = [figure for figure in figures if figure["phase"] == phase]
    models = list(dict.fromkeys(figure["model"] for figure in of_phase))
    rows = [["long + global", *(_NAMES.get(model, model) for model in models)]]
    rows.append(["---"] * len(rows[0]))
    for sizes in dict.fromkeys((x["length"], x["global_length"]) for x in of_phase):
        cells = dict.fromkeys(models, "")
        for figure in of_phase:
            if (figure["length"], figure["global_length"]) == sizes:
                gigabytes = figure["peak_bytes"] / 1e9
                cells[figure["model"]] = f"{figure['seconds']:.3g} s, {gigabytes:.1f} GB"
        rows.append([" + ".join(f"{size:,}" for size in sizes), *cells.values()])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write(figures, directory, theme=style.LIGHT):
    """Writes results.json and results.png; each appears only when it is complete."""
    atomic_files.write_json(os.path.join(directory, "results.json"), figures)
    with atomic_files.new_file(os.path.join(directory, "results.png")) as picture:
        charts.save_png(panels(figures), picture, title=headline(figures), theme=theme)


def panels(figures):
    """Time and memory against length, of reading and of training: list of `charts.Chart`."""
    models = list(dict.fromkeys(figure["model"] for figure in figures))
    made = []
    for title, measure, scale in _MEASURES:
        for phase, what in _PHASES.items():
            points = {model: [] for model in models}
            for figure in figures:
                if figure["phase"] == phase:
                    points[figure["model"]].append((figure["length"], figure[measure] * scale))
            lines = [
                charts.Line(
                    _NAMES.get(model, model), tuple(points[model]), color=models.index(model)
                )
                for model in models
                if points[model]
            ]
            if lines:
                chart = charts.Chart(f"{what}: {title}", "tokens", tuple(lines), is_log=True)
                made.append(chart)
    return made


def headline(figures):
    """How much faster ETC reads, with the seconds: str, lines,, '' where it was measured alone.

    It is of 4,096 tokens, or else of the longest input that another model read, too.
    """
    seconds = {}  # Of each model, by length.
    for figure in figures:
        if figure["phase"] == "forward":
            seconds.setdefault(figure["length"], {})[figure["model"]] = figure["seconds"]
    shared = [length for length, of in seconds.items() if "etc" in of and _others(of)]
    if not shared:
        return ""
    length = _TOLD_LENGTH if _TOLD_LENGTH in shared else max(shared)
    ours, others = seconds[length]["etc"], _others(seconds[length])
    names = sorted(others, key=others.get, reverse=True)
    ratios = [
        f"{others[name] / ours:.1f}× as fast as {_NAMES.get(name, name)}".replace(
            "HF ", "Hugging Face's "
        )
        for name in names
    ]
    lines = [", ".join(ratios[i : i + 2]) for i in range(0, len(ratios), 2)]
    return ",\n".join([f"{length:,} tokens: ETC reads them in {ours:.2g} s", *lines])


def _others(seconds):
    return {name: value for name, value in seconds.items() if not name.startswith("etc")}
