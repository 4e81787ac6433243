"""The picture of who may attend to whom, and as what, like figures 2 and 3 of the paper.

Rows of the picture are queries and columns are keys, of the global and of the long input. What has
the color of the ground is masked; another color is the relative label of the pair. Matplotlib is
imported when a picture is drawn.
"""

import dataclasses

import numpy as np

from etcmodel import extras
from etcmodel.ops.relation_labels import RelationLabels
from etcmodel.pictures import style

__all__ = ["MASKED", "Legend", "check_sizes", "draw", "from_windows"]

MASKED = -1
_MOST_TOKENS = 1000  # With more, a token is narrower than a pixel.
_MOST_WORDS = 48  # With more, words overlap.
_MOST_LINES = 100  # With more, the lines between tokens hide them.


@dataclasses.dataclass(frozen=True)
class _Palette:
    """Colors of labels, each of which differs from the ground, which is masked.

    Attributes:
        positions: from the farthest left to the farthest right: blue before, green after.
        not_linked, linked, other_segment: str.
        named: of relations by name, in turn.
        between: of the lines between tokens.
    """

    positions: tuple
    not_linked: str
    linked: str
    other_segment: str
    named: tuple
    between: str


_PALETTES = {
    style.LIGHT: _Palette(
        positions=("#08306b", "#4292c6", "#b4bfcc", "#41ab5d", "#00441b"),
        not_linked="#f6d9b0",
        linked="#d95f02",
        other_segment="#c7a6d8",
        named=("#e7298a", "#e6ab02", "#66a61e", "#a31621")
        + ("#7b4f2c", "#5b2a86", "#ff9da7", "#8c8c1e"),
        between="#d1d5db",
    ),
    style.DARK: _Palette(
        positions=("#9fd0ff", "#3b82c4", "#5b6673", "#2f9e5a", "#8ff0a4"),
        not_linked="#6b5030",
        linked="#ff8f4d",
        other_segment="#77588a",
        named=("#ff6db6", "#ffd34d", "#a6d854", "#ff5c5c")
        + ("#b98a5e", "#b79cff", "#ffc2c8", "#d2d25a"),
        between="#2b3138",
    ),
}
_BORDER = "#6b7280"
_CAPTION = (
    "A row shows what one token sees: each colored square is a token that it attends to, and the "
    "color says what that one is to it."
)
_CAPTION_OF_PIECES = (
    "\nl2g is what long tokens see of the global ones, g2l what global tokens see of the long ones."
)


@dataclasses.dataclass(frozen=True)
class Legend:
    """What labels mean.

    Attributes:
        labels: `RelationLabels`.
        has_labels: bool. Without labels, all pairs have 0.
        names: dict of int to str, of the free labels.
    """

    labels: RelationLabels
    has_labels: bool = True
    names: dict = dataclasses.field(default_factory=dict)

    def meanings(self):
        """What labels stand for, in words, without those of positions."""
        masked = {MASKED: "masked: may not attend"}
        if not self.has_labels:
            return {0: "may attend", **masked}
        return {
            **({} if self.labels.max_distance else {0: "tokens of the same input"}),
            self.labels.linked: "long and global token, linked",
            self.labels.cross: "long and global token, not linked",
            self.labels.other_segment: "global tokens of different segments",
            **self.names,
            **masked,
        }


def from_windows(local, radius):
    """[tokens, 2 * radius + 1] to [tokens, tokens]; masked beyond the radius."""
    length = len(local)
    full = np.full([length, length], MASKED)
    for query in range(length):
        first, last = max(0, query - radius), min(length, query + radius + 1)
        full[query, first:last] = local[query, first - query + radius : last - query + radius]
    return full


def draw(
    labels,
    legend,
    *,
    local_radius=None,
    long_tokens=(),
    global_tokens=(),
    title="",
    theme=style.LIGHT,
):
    """A `matplotlib.figure.Figure` of 1200 pixels, with the four pieces and a legend.

    Args:
        labels: dict of int arrays [queries, keys] by piece ("g2g", "g2l", "l2g", "l2l"); `MASKED`
            where the query may not attend to the key.
        legend: `Legend`.
        local_radius: int, or None where there is no such thing.
        long_tokens, global_tokens: sequences of str, one a token; or empty.
        title: str.
        theme: `style.Theme`, one of `style.THEMES`.
    Raises:
        ValueError: if there are no long tokens, or too many tokens to be seen.
    """
    with extras.needed("plots"):
        from matplotlib.figure import Figure

    num_long, num_global = labels["l2g"].shape
    check_sizes(num_long, num_global)
    figure = Figure(figsize=(12, 10.5), dpi=100, layout="constrained", facecolor=theme.background)
    radius = "" if local_radius is None else f", radius {local_radius}"
    size = f"{num_global} global and {num_long} long tokens" if num_global else f"{num_long} tokens"
    caption = _CAPTION + (_CAPTION_OF_PIECES if num_global else "")
    text = "\n".join(filter(None, [title, size + radius, caption]))
    figure.suptitle(text, fontsize=12, color=theme.ink)
    sides = [(x, n) for x, n in (("g", num_global), ("l", num_long)) if n]
    grid = figure.subplots(
        len(sides),
        len(sides),
        squeeze=False,
        gridspec_kw={f"{x}_ratios": [n for _, n in sides] for x in ("width", "height")},
    )
    has_lines = num_global + num_long <= _MOST_LINES
    words = {"g": global_tokens, "l": long_tokens}
    found = {x for y in labels.values() for x in y.flat}
    table = _color_table(legend, max(found), theme)
    for row, (query_side, _) in enumerate(sides):
        for column, (key_side, _) in enumerate(sides):
            panel, piece = grid[row, column], f"{query_side}2{key_side}"
            panel.imshow(table[labels[piece]], interpolation="none", aspect="auto")
            panel.set_xlabel(piece, fontsize=13, fontweight="bold", color=theme.ink)
            panel.spines[:].set_color(theme.ink)
            num_queries, num_keys = labels[piece].shape
            _name_tokens(panel.yaxis, words[query_side], num_queries, column == 0, has_lines, theme)
            _name_tokens(panel.xaxis, words[key_side], num_keys, row == 0, has_lines, theme)
    _add_legend(figure, grid, table, legend, found, theme)
    return figure


def check_sizes(num_long, num_global):
    """Raises ValueError if there are no long tokens, or too many tokens to be seen."""
    if num_long == 0 or num_global + num_long > _MOST_TOKENS:
        raise ValueError(
            f"A picture shows at least 1 long token and at most {_MOST_TOKENS} tokens. Received: "
            f"{num_global} global and {num_long} long tokens"
        )


def _position_colors(theme):
    from matplotlib import colors

    return colors.LinearSegmentedColormap.from_list("positions", _PALETTES[theme].positions)


def _color_table(legend, highest, theme):
    """Colors by label, float [labels, 3], up to the highest; the last, at `MASKED`, is the ground.

    Args:
        legend: `Legend`.
        highest: int.
        theme: `style.Theme`.
    """
    from matplotlib import colors

    k, palette = legend.labels.max_distance, _PALETTES[theme]
    shares = (np.array(legend.labels.offsets) + k) / (2 * k) if k else [0.5]
    positions = _position_colors(theme)(shares)
    others = [palette.not_linked, palette.linked, palette.other_segment]
    named = palette.named
    others += [named[x % len(named)] for x in range(highest + 1 - legend.labels.num_reserved)]
    return np.concatenate([positions, colors.to_rgba_array([*others, theme.background])])[:, :3]


def _name_tokens(axis, words, length, is_outer, has_lines, theme):
    """Words or numbers at the outer panels, and thin lines between tokens."""
    if has_lines:
        axis.set_ticks(np.arange(1, length) - 0.5, minor=True)
        axis.grid(which="minor", color=_PALETTES[theme].between, linewidth=0.5)
    axis.set_tick_params(which="both", length=0, labelsize=9, labelcolor=theme.ink)
    if axis.axis_name == "x":
        axis.tick_top()
        axis.set_tick_params(rotation=90)
        axis.set_label_position("bottom")
    if not is_outer:
        axis.set_tick_params(labelleft=False, labeltop=False)
    elif words and length <= _MOST_WORDS:
        axis.set_ticks(range(length), words)


def _add_legend(figure, grid, table, legend, found, theme):
    """Tells what the colors of the labels that are found mean."""
    from matplotlib import cm, colors
    from matplotlib.patches import Patch

    meanings = legend.meanings()
    unnamed = sorted(x for x in found if x >= legend.labels.num_reserved and x not in meanings)
    meanings = {**{label: f"label {label}" for label in unnamed}, **meanings}
    handles = [
        Patch(facecolor=table[label], edgecolor=_BORDER, label=meaning)
        for label, meaning in meanings.items()
        if label in found
    ]
    words = {"fontsize": 11, "labelcolor": theme.ink}
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, **words)
    if k := legend.labels.max_distance:
        norm = colors.BoundaryNorm(np.arange(-k, k + 2) - 0.5, 256)
        ramp = cm.ScalarMappable(norm, _position_colors(theme).resampled(256))
        bar = figure.colorbar(ramp, ax=grid, ticks=range(-k, k + 1), aspect=40, shrink=0.6)
        names = [f"{offset:+d}" for offset in range(-k, k + 1)]
        names[0], names[k], names[-1] = f"{-k} and below", "0", f"+{k} and above"
        bar.set_ticklabels(names, color=theme.ink)
        bar.ax.tick_params(which="both", color=theme.ink)
        bar.outline.set_edgecolor(theme.ink)
        name = "position of the key minus that of the query (same input)"
        bar.set_label(name, fontsize=11, color=theme.ink)
