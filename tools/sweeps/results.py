"""The results of a sweep: tables in Markdown and CSV, the best trial's command, and the picture."""

import csv
import io
import math
import os
import shlex

from etcmodel import atomic_files, extras
from etcmodel.pictures import style
from etcmodel.tools.sweeps import space as space_lib

__all__ = [
    "CSV_FILE",
    "MARKDOWN_FILE",
    "best_of",
    "command_line",
    "draw",
    "drawn",
    "import_matplotlib",
    "ranked",
    "table",
    "write",
]

CSV_FILE, MARKDOWN_FILE = "trials.csv", "trials.md"


def best_of(rows):
    """The complete trial with the best value, the first in the list: `Row`; None without one."""
    return next((row for row in rows if row.state == "complete"), None)


def ranked(rows, goal):
    """Trials from best to worst, then those without a value, in order: list of `Row`.

    Args:
        rows: list of `Row`.
        goal: `study.Goal`; None if no trial has begun.
    """
    return sorted(
        rows, key=lambda row: (row.best is None, -goal.signed(row.best) if row.best else 0)
    )


def table(rows, names, metric):
    """The cells of the table, with header: list of lists of str.

    Args:
        rows: list of `Row`.
        names: list of str. The options.
        metric: str.
    """
    head = ["trial", *names, metric, "step", "state", "run", "problem"]
    return [head, *([*_cells(row, names)] for row in rows)]


def _cells(row, names):
    yield str(row.number)
    yield from (space_lib.as_text(row.values[x]) if x in row.values else "" for x in names)
    yield "" if row.best is None else repr(row.best)
    yield "" if row.step is None else str(row.step)
    yield from (row.state, row.folder, row.problem)


def command_line(plan, row):
    """The command that a user would type for a trial: str."""
    return f"{plan.title} {shlex.join(plan.trial_flags(row.values, row.folder))}"


def write(plan, rows, goal):
    """Writes both tables to the folder of a plan.

    Args:
        plan: `Plan`.
        rows: list of `Row`.
        goal: `study.Goal`; None if no trial has set it.
    """
    rows, names = ranked(rows, goal), list(plan.space)
    cells = table(rows, names, goal.metric if goal else "metric")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(cells)
    atomic_files.write_text(os.path.join(plan.folder, CSV_FILE), [text.getvalue()])
    atomic_files.write_text(
        os.path.join(plan.folder, MARKDOWN_FILE), _page(plan, rows, goal, cells)
    )


def _page(plan, rows, goal, cells):
    yield f"# Sweep of {plan.program}: {len(rows)} trials\n\n"
    if goal:
        better = "higher" if goal.higher_is_better else "lower"
        yield f"By `{goal.metric}` ({better} is better): the best evaluation of each run.\n\n"
    head, *others = cells
    for line in (head, ["---"] * len(head), *others):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n"
    if best := best_of(rows):
        yield f"\nThe best trial, {best.number}:\n\n```sh\n{command_line(plan, best)}\n```\n"


# The picture of a sweep: each trial is a line through its values to the metric.


_BEST = 1  # Of a theme's `series`.
_MARGIN = 0.06  # Of an axis, above and below what it shows.
_PALEST = 0.35  # Share of the color in that of the worst trial.


def import_matplotlib():
    """Imports Matplotlib, to fail before the first trial rather than after the last."""
    with extras.needed("sweep"):
        from matplotlib import figure

    return figure


def draw(path, plan, rows, goal, theme=style.LIGHT):
    """Writes a PNG file; it appears when complete.

    Args:
        path: str.
        plan, rows, goal, theme: as in `drawn`.
    """
    with atomic_files.new_file(path) as unfinished, style.drawing(theme):
        drawn(plan, rows, goal, theme).savefig(unfinished, format="png")


def drawn(plan, rows, goal, theme=style.LIGHT):
    """The `matplotlib.figure.Figure`; to be called within `style.drawing(theme)`.

    Args:
        plan: `Plan`.
        rows: list of `Row` with a best value, best first; at least one is complete.
        goal: `study.Goal`.
        theme: `style.Theme`.
    """
    axes = [_Axis(name, dimension) for name, dimension in plan.space.items()]
    axes.append(_MetricAxis(goal, [row.best for row in rows]))
    width = max(7.0, 2.2 * len(axes))
    drawing = import_matplotlib().Figure(figsize=(width, 5.4), dpi=120, layout="constrained")
    panel = drawing.subplots()
    best = next(row for row in rows if row.state == "complete")
    for row in reversed(rows):  # The best is drawn over the others.
        heights = [axis.height(row.values.get(axis.name, row.best)) for axis in axes]
        look = _look(row, row is best, heights[-1], theme)
        panel.plot(range(len(axes)), heights, marker="o", markersize=4, **look)
    panel.annotate(
        f"trial {best.number}: {best.best:.4g}",
        (len(axes) - 1, axes[-1].height(best.best)),
        xytext=(-8, 8),
        textcoords="offset points",
        ha="right",
        color=theme.series[_BEST],
        fontweight="bold",
    )
    for place, axis in enumerate(axes):
        _draw_axis(panel, place, axis, theme)
    panel.set_xticks(range(len(axes)), [axis.title for axis in axes])
    panel.set(xlim=(-0.4, len(axes) - 0.5), ylim=(0, 1), yticks=[])
    panel.tick_params(axis="x", length=0, labelsize=11, labelcolor=theme.ink)
    panel.grid(visible=False)
    for spine in panel.spines.values():
        spine.set_visible(False)
    title = _title(plan, rows, goal, theme)
    panel.set_title(title, fontsize=12, fontweight="normal", loc="left")
    return drawing


def _title(plan, rows, goal, theme):
    shade = "darker" if theme is style.LIGHT else "brighter"
    num_others = sum(row.state != "complete" for row in rows)
    lines = [
        f"Sweep of {_human(plan.program)}: the best {_human(goal.metric)} of {len(rows)} trials",
        f"A line is a trial; {shade} lines are better ones, and the best is orange.",
    ]
    if num_others:
        lines.append(f"Dashed: {num_others} that did not go to the end, at their best so far.")
    return "\n".join(lines)


def _look(row, is_best, height, theme):
    if is_best:
        return {"color": theme.series[_BEST], "linewidth": 2.5, "zorder": 4}
    if row.state != "complete":
        return {"color": theme.muted, "linewidth": 1, "linestyle": "--", "zorder": 2}
    return {"color": _shade(height, theme), "linewidth": 1.4, "zorder": 3}


def _shade(height, theme):
    """A color between the background and the theme's first color, by rank."""
    from matplotlib import colors

    ground, full = (colors.to_rgb(color) for color in (theme.background, theme.series[0]))
    share = _PALEST + (1 - _PALEST) * height
    return colors.to_hex([(1 - share) * a + share * b for a, b in zip(ground, full, strict=True)])


def _draw_axis(panel, place, axis, theme):
    panel.axvline(place, color=theme.muted, linewidth=0.8, zorder=1)
    for value, label in axis.ticks():
        panel.annotate(
            label,
            (place, axis.height(value)),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=theme.ink,
            bbox={"facecolor": theme.background, "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
            zorder=5,
        )


class _Axis:
    """The axis of an option: evenly spaced choices, or a range."""

    def __init__(self, name, dimension):
        self.name, self.title = name, _human(name)
        self._dimension = dimension
        if isinstance(dimension, space_lib.Choices):
            self._values = _sorted(dimension.values)
        elif dimension.is_log:
            self.title += "\n(log scale)"

    def height(self, value):
        """Where a value is, in [0, 1]."""
        dimension = self._dimension
        if isinstance(dimension, space_lib.Choices):
            most = len(self._values) - 1
            return _within(self._values.index(value) / most if most else 0.5)
        scale = math.log if dimension.is_log else float
        low, high = scale(dimension.low), scale(dimension.high)
        return _within((scale(value) - low) / (high - low))

    def ticks(self):
        """Values and their labels."""
        if isinstance(self._dimension, space_lib.Choices):
            return [(value, _plain(value)) for value in self._values]
        return [(value, _plain(value)) for value in (self._dimension.low, self._dimension.high)]


class _MetricAxis:
    """The axis of the metric, on which better is higher up."""

    name = None

    def __init__(self, goal, values):
        better = "higher" if goal.higher_is_better else "lower"
        self.title = f"{_human(goal.metric)}\n({better} is better)"
        self._ends = sorted([min(values), max(values)], key=goal.signed)

    def height(self, value):
        """Where a value is, in [0, 1]."""
        worst, best = self._ends
        return _within((value - worst) / (best - worst) if best != worst else 0.5)

    def ticks(self):
        """Values and their labels."""
        worst, best = self._ends
        values = [worst] if worst == best else [worst, (worst + best) / 2, best]
        return [(value, f"{value:.3g}") for value in values]


def _within(share):
    return _MARGIN + (1 - 2 * _MARGIN) * share


def _sorted(values):
    numbers = sorted(value for value in values if not isinstance(value, str))
    return [*numbers, *(value for value in values if isinstance(value, str))]


def _plain(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def _human(name):
    return name.replace("_", " ").replace("num ", "").replace(" f1", " F1")
