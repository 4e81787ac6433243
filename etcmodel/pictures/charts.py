"""Line charts with labels at the ends of the lines instead of a legend."""

import dataclasses
import math

from etcmodel import extras
from etcmodel.pictures import style

_MOST_MARKERS = 40  # With more points, markers would merge into a band.
_LINE_STYLES = ("-", ":")  # For lines of one color, in turn.
_LINE_HEIGHT = 1.25  # Of labels, in multiples of the font size.
_COLUMN_INCHES = 4.6  # About 330 points: the width of a phone, where the text keeps its size.
_ROW_INCHES = 3.1


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a chart.

    Attributes:
        label: str. Name, written at the line's end.
        points: sequence of (x, y).
        color: int. Index into a theme's `series`; None takes the next one.
        is_reference: bool. Whether it is only for comparison: dashed and gray.

    >>> from etcmodel.pictures import charts
    >>> charts.Line("ETC", ((512, 0.4), (1024, 0.7))).points[-1]
    (1024, 0.7)
    """

    label: str
    points: tuple
    color: int | None = None
    is_reference: bool = False


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart of one measure, drawn in one panel.

    Attributes:
        title: str. The measure, with the unit and the direction that is better.
        x_label: str.
        lines: sequence of `Line`.
        is_log: bool. Whether both axes are logarithmic, with a tick at each x.
        floor: float or None. Lower end of the vertical axis.

    >>> from etcmodel.pictures import charts
    >>> charts.Chart("seconds (lower is better)", "tokens", lines=(), is_log=True).x_label
    'tokens'
    """

    title: str
    x_label: str
    lines: tuple
    is_log: bool = False
    floor: float | None = None


def number(value):
    """A number in readable form: "4,096", "0.25", "3e-05"."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.2g}"
    return f"{value:.4g}"


def draw(charts, theme=style.LIGHT, *, columns=1, title=""):
    """Makes a figure with a panel for each chart; call it within `style.drawing(theme)`.

    Args:
        charts: list of `Chart`.
        theme: `style.Theme`.
        columns: int.
        title: str. Title of the figure; '' for none.
    Returns:
        `matplotlib.figure.Figure`.
    """
    with extras.needed("plots"):
        from matplotlib.figure import Figure  # Slow to import.

    rows = math.ceil(len(charts) / columns)
    size = (_COLUMN_INCHES * columns, _ROW_INCHES * rows + (0.5 if title else 0))
    figure = Figure(figsize=size, layout="constrained")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, chart in zip(panels, charts, strict=False):
        draw_panel(panel, chart, theme)
    for panel in panels[len(charts) :]:
        panel.remove()
    return figure


def draw_panel(panel, chart, theme):
    """Draws a chart.

    Args:
        panel: `matplotlib.axes.Axes`.
        chart: `Chart`.
        theme: `style.Theme`.
    """
    panel.set(title=chart.title, xlabel=chart.x_label)
    lines = [line for line in chart.lines if line.points]
    for place, line in enumerate(lines):
        # A second line of the same color is dotted.
        turn, color = divmod(place if line.color is None else line.color, len(theme.series))
        panel.plot(
            *zip(*line.points, strict=True),
            color=theme.muted if line.is_reference else theme.series[color],
            linestyle="--" if line.is_reference else _LINE_STYLES[turn % len(_LINE_STYLES)],
            linewidth=1.4 if line.is_reference else 2.0,
            marker="o" if len(line.points) <= _MOST_MARKERS and not line.is_reference else None,
            label=line.label,
            clip_on=False,
        )
    _set_ticks(panel, chart, lines)
    if chart.floor is not None:
        panel.set_ylim(bottom=chart.floor)
    _label_ends(panel, lines)


def _set_ticks(panel, chart, lines):
    from matplotlib import ticker

    plain = ticker.FuncFormatter(lambda value, _: number(value))
    if chart.is_log:
        panel.set(xscale="log", yscale="log")
        panel.xaxis.set_major_locator(
            ticker.FixedLocator(sorted({x for line in lines for x, _ in line.points}))
        )
        panel.yaxis.set_major_locator(ticker.LogLocator(base=10, subs=(1, 2, 5), numticks=20))
        panel.minorticks_off()
    else:
        places = [x for line in lines for x, _ in line.points]
        if min(places, default=0) >= 0:
            panel.set_xlim(left=0)
        are_steps = all(float(x).is_integer() for x in places)
        panel.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=are_steps))
        panel.yaxis.set_major_locator(ticker.MaxNLocator(5))
    panel.xaxis.set_major_formatter(plain)
    panel.yaxis.set_major_formatter(plain)


def _label_ends(panel, lines):
    """Writes the labels to the right of the last points, moved apart if they would overlap."""
    drawn = list(zip(lines, panel.lines, strict=True))
    if not drawn:
        return
    lowest, highest = panel.get_ylim()
    heights = panel.transAxes.inverted().transform(
        panel.transData.transform([line.points[-1] for line in lines])
    )[:, 1]
    panel.set_ylim(lowest, highest)  # The labels must not change it.
    inches = panel.get_figure().get_size_inches()[1] / panel.get_gridspec().nrows
    points = 72 * 0.7 * inches  # About the height of the panel.
    gap = _LINE_HEIGHT * 10 / points
    farthest = max(line.points[-1][0] for line in lines)
    for (line, drawn_line), place in zip(drawn, _apart(heights, gap), strict=True):
        if line.points[-1][0] < farthest:
            _lead(panel, line.points[-1], place, drawn_line.get_color())
        panel.annotate(
            line.label,
            (1.0, place),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=drawn_line.get_color(),
            fontweight="bold" if drawn_line is panel.lines[0] and len(drawn) > 1 else "normal",
            annotation_clip=False,
        )


def _lead(panel, point, place, color):
    """Draws a thin connection from a line that ends early to its label."""
    panel.annotate(
        "",
        (1.0, place),
        xycoords="axes fraction",
        xytext=point,
        textcoords="data",
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.8, "linestyle": ":"},
        annotation_clip=False,
    )


def _apart(places, gap):
    """Positions in the same order, at least a gap apart and as close to the given ones as possible.

    Groups that would overlap are spread evenly around their mean.
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups = []  # Of (mean, members).
    for index in order:
        groups.append(([places[index]], [index]))
        while len(groups) > 1 and _top(groups[-2], gap) + gap > _bottom(groups[-1], gap):
            values, members = groups.pop()
            groups[-1][0].extend(values)
            groups[-1][1].extend(members)
    moved = [0.0] * len(places)
    for group in groups:
        for rank, index in enumerate(group[1]):
            moved[index] = _bottom(group, gap) + rank * gap
    return moved


def _bottom(group, gap):
    values, members = group
    return sum(values) / len(values) - gap * (len(members) - 1) / 2


def _top(group, gap):
    return _bottom(group, gap) + gap * (len(group[1]) - 1)


def save_png(charts, path, *, columns=2, title="", theme=style.LIGHT):
    """Writes a PNG file of charts.

    Args:
        charts, columns, title, theme: as in `draw`.
        path: str. A temporary name, such as from `atomic_files.new_file`.

    >>> import os
    >>> from etcmodel.pictures import charts
    >>> line = charts.Line("ETC", ((512, 0.4), (1024, 0.7)))
    >>> charts.save_png([charts.Chart("seconds", "tokens", (line,))], "chart.png")
    >>> os.path.exists("chart.png")
    True
    """
    with style.drawing(theme):
        draw(charts, theme, columns=columns, title=title).savefig(path, format="png", dpi=110)
