"""Draws which tokens may attend to which, and as what, like figures 2 and 3 of the paper.

Rows of the picture are queries and columns are keys, of the global and of the long input. Pairs in
the background's color are masked; another color is the relative label of the pair. Matplotlib is
imported when a picture is drawn.
"""

import dataclasses
import itertools

import numpy as np

from etcmodel import extras
from etcmodel.ops.relation_labels import RelationLabels
from etcmodel.pictures import style

__all__ = ["MASKED", "Legend", "check_sizes", "draw", "from_windows"]

MASKED = -1
_MOST_TOKENS = 1000  # Of which the labels of all pairs are in memory.
_WIDTH, _HEIGHT = 12, 10.5  # Of the picture; lengths are in inches.
_DOTS = 100  # An inch.
_GAP = 0.4  # Between panels, for the name of the upper one.
_NAME = 0.141  # The height of a token's name, of 9 points.
_LETTER = 0.075  # The width of one of its letters.
_MOST_LETTERS = 20
_TITLE_LINE, _LEGEND_LINE = 0.21, 0.24
_MOST_LEGEND_LINES = 8
_SHARES = {"g": 0.45, "l": 0.6}  # Of the panels: up to here a side has room for all its names.
_LEAST_SHARE = 0.25  # Of a side that has more of them.
_LEAST_BETWEEN = 0.06  # In narrower tokens, lines between them would hide them.
_MOST_TICKS = 25  # Of the positions beside their colors.


@dataclasses.dataclass(frozen=True)
class _Palette:
    """Colors of labels, each of which differs from the background, which means masked.

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
    style.NEUTRAL: _Palette(
        positions=("#1f5fa8", "#5b9bd5", "#8d96a0", "#56b37a", "#1f7a45"),
        not_linked="#b09468",
        linked="#d95f02",
        other_segment="#a583b8",
        named=("#e7298a", "#b98a06", "#5a9a1c", "#c94a4a")
        + ("#a06a40", "#8a63b8", "#d9707c", "#8c8c1e"),
        between="#7d858f",
    ),
}
_BORDER = "#6b7280"
_CAPTION = (
    "A row is a token, each colored square a token that it attends to, "
    "and the color their relative label."
)
_CAPTION_OF_PIECES = (
    "\nl2g: long tokens attend to global ones; g2l: global tokens attend to long ones."
)


@dataclasses.dataclass(frozen=True)
class Legend:
    """The meaning of labels.

    Attributes:
        labels: `RelationLabels`.
        has_labels: bool. Without labels, all pairs have 0.
        names: dict of int to str, of the free labels.
    """

    labels: RelationLabels
    has_labels: bool = True
    names: dict = dataclasses.field(default_factory=dict)

    def meanings(self):
        """Describes labels in words, except those of positions."""
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
    """Expands [tokens, 2 * radius + 1] to [tokens, tokens]; masked beyond the radius."""
    length = len(local)
    full = np.full([length, length], MASKED)
    for query in range(length):
        first, last = max(0, query - radius), min(length, query + radius + 1)
        full[query, first:last] = local[query, first - query + radius : last - query + radius]
    return full


@dataclasses.dataclass(frozen=True)
class _Side:
    """The long or the global tokens that are drawn.

    Attributes:
        places: int array. Their positions in the row.
        words: sequence of str, one per token, or empty.
        has_numbers: bool. Whether names begin with the position, as an earlier token has no name.
    """

    places: np.ndarray
    words: tuple
    has_numbers: bool

    def __len__(self):
        return len(self.places)

    @property
    def most_letters(self):
        """int. The most letters of a name."""
        longest = max(map(len, self.words), default=0)
        numbers = len(str(self.places[-1])) + 1
        return min(longest + numbers * (self.has_numbers or not longest), _MOST_LETTERS)

    def names(self, interval):
        """Names of every `interval`th token: list of str."""
        places = self.places[::interval].tolist()
        if not self.words:
            return [str(place) for place in places]
        words, is_whole = self.words[::interval], places == list(range(len(places)))
        if self.has_numbers and not is_whole:
            words = [f"{place} {word}" for place, word in zip(places, words, strict=True)]
        return [x if len(x) <= _MOST_LETTERS else f"{x[: _MOST_LETTERS - 1]}…" for x in words]


@dataclasses.dataclass(frozen=True)
class _Frame:
    """The positions of the panels: known before drawing, so that nothing overlaps.

    Attributes:
        left, top: float. Position of the first panel, in inches from the left and from above.
        widths, heights: dict of float by side: of the panels with its tokens as keys, as queries.
    """

    left: float
    top: float
    widths: dict
    heights: dict

    @classmethod
    def of(cls, sides, has_bar, title_lines, legend_lines):
        names = 0.15 + _LETTER * max(side.most_letters for side in sides.values())
        top = 0.15 + _TITLE_LINE * title_lines + names
        gaps = _GAP * (len(sides) - 1)
        width = _WIDTH - names - (2.1 if has_bar else 0.3) - gaps
        height = _HEIGHT - top - _GAP - _LEGEND_LINE * legend_lines - 0.15 - gaps
        return cls(names, top, _shared(sides, width), _shared(sides, height))

    def tokens_per_square(self, sides):
        """How many tokens a row or a column stands for, so that it is at least one dot wide."""
        shortest = {side: min(self.widths[side], self.heights[side]) for side in sides}
        return {x: _interval(len(side), int(shortest[x] * _DOTS)) for x, side in sides.items()}

    def add_panel(self, figure, query_side, key_side):
        """Adds the `Axes` of a piece."""
        first = next(iter(self.widths))
        left = self.left + (self.widths[first] + _GAP) * (key_side != first)
        top = self.top + (self.heights[first] + _GAP) * (query_side != first)
        return _add_axes(figure, left, top, self.widths[key_side], self.heights[query_side])


def draw(
    labels,
    legend,
    *,
    local_radius=None,
    long_tokens=(),
    global_tokens=(),
    title="",
    theme=style.LIGHT,
    places=None,
    hint="",
):
    """Draws a `matplotlib.figure.Figure` of 1200 pixels, with the four pieces and a legend.

    Large inputs stay readable: if there is no room for all names, every second, fifth, tenth and so
    on is written, a row or column may stand for several tokens, and panels of a few global tokens
    beside many long ones are as large as their names need.

    Args:
        labels: dict of int arrays [queries, keys] by piece ("g2g", "g2l", "l2g", "l2l"); `MASKED`
            where the query may not attend to the key. With `places`, a function of a piece and the
            positions of queries and keys that returns such an array: those of a long input need not
            all be in memory at once.
        legend: `Legend`.
        local_radius: int, or None if there is none.
        long_tokens, global_tokens: sequences of str, one per drawn token; or empty.
        title: str.
        theme: `style.LIGHT`, `style.DARK` or `style.NEUTRAL`.
        places: dict of int arrays by side ("g", "l"): the tokens to draw. None: all.
        hint: str. How to show more, written if not everything is shown.
    Raises:
        ValueError: if there are no long tokens.
    """
    with extras.needed("plots"):
        from matplotlib.figure import Figure

    if places is None:
        labels, places = _by_places(labels)
    sides = {"g": _Side(places["g"], global_tokens, False)} if len(places["g"]) else {}
    sides["l"] = _Side(places["l"], long_tokens, True)
    heading = _heading(sides, local_radius, title)
    lines, has_bar = len(heading) + bool(hint), legend.labels.max_distance > 0
    frame = _Frame.of(sides, has_bar, lines, _num_lines(legend.meanings()))
    steps = frame.tokens_per_square(sides)
    squares = _squares(labels, sides, steps, legend.labels.num_positions)
    meanings = _meanings_of(legend, np.unique(np.concatenate([x.flat for x in squares.values()])))
    table = _color_table(legend, max(meanings, default=MASKED), theme)
    frame = _Frame.of(sides, has_bar, lines, _num_lines(meanings))
    figure = Figure(figsize=(_WIDTH, _HEIGHT), dpi=_DOTS, facecolor=theme.background)
    is_whole = _add_panels(figure, frame, sides, squares, steps, table, theme)
    heading += [] if is_whole else _left_out(steps, hint)
    title_text = figure.suptitle("\n".join(heading), fontsize=12, color=theme.ink)
    title_text.set(y=1 - 0.1 / _HEIGHT, parse_math=False)
    _add_legend(figure, table, meanings, theme)
    if has_bar:
        _add_bar(figure, frame, legend.labels.max_distance, theme)
    return figure


def check_sizes(num_long, num_global):
    """Raises ValueError if there are no long tokens, or too many tokens to show."""
    if num_long == 0 or num_global + num_long > _MOST_TOKENS:
        raise ValueError(
            f"A picture shows at least 1 long token and at most {_MOST_TOKENS} tokens. Received: "
            f"{num_global} global and {num_long} long tokens"
        )


def _position_colors(theme):
    from matplotlib import colors

    return colors.LinearSegmentedColormap.from_list("positions", _PALETTES[theme].positions)


def _color_table(legend, highest, theme):
    """Colors of labels up to the highest, float [labels, 4]; at `MASKED`, the last: background."""
    from matplotlib import colors

    k, palette = legend.labels.max_distance, _PALETTES[theme]
    shares = (np.array(legend.labels.offsets) + k) / (2 * k) if k else [0.5]
    positions = _position_colors(theme)(shares)
    others = [palette.not_linked, palette.linked, palette.other_segment]
    named = palette.named
    others += [named[x % len(named)] for x in range(highest + 1 - legend.labels.num_reserved)]
    return np.concatenate([positions, colors.to_rgba_array([*others, theme.background])])


def _by_places(labels):
    """Labels of all pairs as a function of positions, and all positions."""
    num_long, num_global = labels["l2g"].shape
    check_sizes(num_long, num_global)
    places = {"g": np.arange(num_global), "l": np.arange(num_long)}
    return (lambda piece, queries, keys: labels[piece][np.ix_(queries, keys)]), places


def _heading(sides, local_radius, title):
    """The lines above the picture: list of str."""
    radius = "" if local_radius is None else f", radius {local_radius}"
    numbers = {side: len(x) for side, x in sides.items()}
    size = "{l} tokens" if len(sides) == 1 else "{g} global and {l} long tokens"
    caption = _CAPTION + (_CAPTION_OF_PIECES if len(sides) > 1 else "")
    return [*title.splitlines(), size.format(**numbers) + radius, *caption.splitlines()]


def _shared(sides, length):
    """The length of each side: by its number of tokens, but with room for names."""
    if len(sides) == 1:
        return {"l": length}
    wanted = {x: len(side) * _NAME for x, side in sides.items()}
    least = {x: y if y <= _SHARES[x] * length else _LEAST_SHARE * length for x, y in wanted.items()}
    share = length * wanted["g"] / sum(wanted.values())
    share = min(max(share, least["g"]), length - least["l"])
    return {"g": share, "l": length - share}


def _interval(number, most):
    """The least of 1, 2, 5, 10, 20, … by which `number` things are thinned to at most `most`."""
    candidates = (x * 10**power for power in itertools.count() for x in (1, 2, 5))
    return next(x for x in candidates if -(-number // x) <= max(most, 1))


def _squares(labels, sides, steps, num_positions):
    """The labels to draw: dict of int arrays by piece.

    For several pairs in a square the highest label is drawn, so that no relation and no link is
    lost; for positions alone that of the first pair.
    """
    found = {}
    for piece in (f"{query}2{key}" for query in sides for key in sides):
        (rows, queries), (columns, keys) = ((steps[x], sides[x].places) for x in piece[::2])
        firsts, lines = np.arange(0, len(keys), columns), []
        for first in range(0, len(queries), rows):
            strip = labels(piece, queries[first : first + rows], keys)
            highest = np.maximum.reduceat(strip.max(axis=0), firsts)
            corner = strip[0, firsts]
            lines.append(np.where((highest < num_positions) & (corner != MASKED), corner, highest))
        found[piece] = np.array(lines)
    return found


def _left_out(steps, hint):
    """The hint if not everything is shown: list of one line, or none."""
    joined = {"g": "global", "l": "long"}
    several = [f"{step} {joined[side]}" for side, step in steps.items() if step > 1]
    told = f"A row or column stands for {' or '.join(several)} tokens. " if several else ""
    return list(filter(None, [told + hint]))


def _add_axes(figure, left, top, width, height):
    """Adds `Axes` at a position, in inches from the left and from above."""
    bottom = _HEIGHT - top - height
    size = (left / _WIDTH, bottom / _HEIGHT, width / _WIDTH, height / _HEIGHT)
    return figure.add_axes(size)


def _add_panels(figure, frame, sides, squares, steps, table, theme):
    """Draws the pieces; returns whether each token is shown with its name."""
    first, is_whole = next(iter(sides)), True
    for piece, pairs in squares.items():
        query_side, key_side = piece[::2]
        panel = frame.add_panel(figure, query_side, key_side)
        panel.set_facecolor(theme.background)
        colors = table[pairs]
        look = {"interpolation": "none", "aspect": "auto", "alpha": colors[..., 3]}
        panel.imshow(colors[..., :3], **look)
        panel.set_xlabel(piece, fontsize=13, fontweight="bold", color=theme.ink)
        panel.xaxis.tick_top()
        panel.xaxis.set_label_position("bottom")
        panel.xaxis.set_tick_params(rotation=90)
        panel.spines[:].set_color(theme.ink)
        for axis, side, length, is_outer in (
            (panel.yaxis, query_side, frame.heights[query_side], key_side == first),
            (panel.xaxis, key_side, frame.widths[key_side], query_side == first),
        ):
            _draw_lines(axis, len(sides[side]), length, theme)
            is_whole &= _name_tokens(axis, sides[side], steps[side], length, is_outer)
    return is_whole


def _draw_lines(axis, number, length, theme):
    """Draws thin lines between tokens that are wide enough."""
    if length >= _LEAST_BETWEEN * number:
        axis.set_ticks(np.arange(1, number) - 0.5, minor=True)
        axis.grid(which="minor", color=_PALETTES[theme].between, linewidth=0.5)
    axis.set_tick_params(which="both", length=0, pad=5, labelsize=9, labelcolor=theme.ink)


def _name_tokens(axis, side, step, length, is_outer):
    """Writes names at an outer panel; returns whether there is room for all."""
    interval = _interval(len(side), int(length / _NAME))
    centers = (np.arange(0, len(side), interval) + 0.5) / step - 0.5
    axis.set_ticks(centers if is_outer else [])
    if is_outer:
        axis.set_ticklabels(side.names(interval), parse_math=False)  # A token may have a $.
    return interval == 1


def _num_lines(meanings):
    """The lines of a legend of two columns, or of more with many meanings."""
    return min(-(-len(meanings) // 2), _MOST_LEGEND_LINES)


def _meanings_of(legend, found):
    """The meanings of the drawn labels: dict of int to str."""
    meanings, found = legend.meanings(), set(found.tolist())
    unnamed = sorted(x for x in found if x >= legend.labels.num_reserved and x not in meanings)
    meanings = {**{label: f"label {label}" for label in unnamed}, **meanings}
    return {label: meaning for label, meaning in meanings.items() if label in found}


def _add_legend(figure, table, meanings, theme):
    """Adds the legend of the labels' colors."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=table[label], edgecolor=_BORDER, label=meaning)
        for label, meaning in meanings.items()
    ]
    columns = max(2, -(-len(meanings) // _MOST_LEGEND_LINES))
    words = {"fontsize": 11 if columns == 2 else 8, "labelcolor": theme.ink}
    legend = figure.legend(
        handles=handles, loc="lower center", ncols=columns, frameon=False, **words
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # Names of relations may have a $, too.


def _add_bar(figure, frame, k, theme):
    """Adds the legend of the positions' colors, up to `k` apart."""
    from matplotlib import cm, colors

    height = 0.6 * (_HEIGHT - frame.top)
    number = max(256, 2 * k + 1)
    norm = colors.BoundaryNorm(np.arange(-k, k + 2) - 0.5, number)
    ramp = cm.ScalarMappable(norm, _position_colors(theme).resampled(number))
    axes = _add_axes(figure, _WIDTH - 1.75, frame.top + 0.1 * height, height / 40, height)
    step = _interval(2 * k + 1, _MOST_TICKS)
    inner = [x for x in range(-k // step * step, k, step) if abs(x) <= k - step]
    ticks = [-k, *inner, k]
    bar = figure.colorbar(ramp, cax=axes, ticks=ticks)
    names = [f"{offset:+d}" if offset else "0" for offset in inner]
    bar.set_ticklabels([f"{-k} and below", *names, f"+{k} and above"], color=theme.ink)
    bar.ax.tick_params(which="both", color=theme.ink)
    bar.outline.set_edgecolor(theme.ink)
    name = "position of the key minus that of the query (same input)"
    bar.set_label(name, fontsize=11, color=theme.ink)
