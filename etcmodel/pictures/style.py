"""The colors and the drawing style of all pictures. Matplotlib is imported when one is drawn.

The hues are those of Okabe and Ito, which are distinguishable for color-blind readers, each dark
enough (on white) or light enough (on black) for readable text: a contrast of at least 4.5.
Those of `NEUTRAL`, whose background is transparent, have at least 3.5 on white and on black.
"""

import contextlib
import dataclasses
import html
import io
import re

from etcmodel import extras

_FONT_SIZE = 10


@dataclasses.dataclass(frozen=True)
class Theme:
    """Colors ("#rrggbb") of background, text, secondary text, grid, and data series.

    The first of the `series` is for the main subject of a picture. A background of
    "none" is transparent.
    """

    background: str
    ink: str
    muted: str
    grid: str
    series: tuple

    def by_role(self):
        """dict from the names in style sheets to colors."""
        named = {f"series-{number}": color for number, color in enumerate(self.series)}
        return {"ground": self.background, "ink": self.ink, "muted": self.muted} | {
            "grid": self.grid,
            **named,
        }


LIGHT = Theme(
    background="#ffffff",
    ink="#1b1f24",
    muted="#57606a",
    grid="#e1e4e8",
    series=("#0067a3", "#b84500", "#00735a", "#9c3d75", "#7a5c00", "#3f6a8c", "#5f666e"),
)
DARK = Theme(
    background="#15181c",
    ink="#eceff2",
    muted="#a5adb6",
    grid="#343a41",
    series=("#5cb8ee", "#ff8f4d", "#3dcca5", "#e79ac6", "#e8c04a", "#a9c3d9", "#b4bac1"),
)
NEUTRAL = Theme(
    background="none",
    ink="#7d858f",
    muted="#7d858f",
    grid="#7d858f4d",  # The last two digits are the opacity.
    series=("#2b86c9", "#cf6a1a", "#1f9470", "#bf5f98", "#a07d1e", "#6c8aa6", "#7f868e"),
)
# By their names in options.
THEMES = {"light": LIGHT, "dark": DARK, "neutral": NEUTRAL}


def named(name):
    """The `Theme` of a name of `THEMES`; raises ValueError for others."""
    if name not in THEMES:
        known = ", ".join(map(repr, THEMES))
        raise ValueError(f"`theme` must be one of {known}. Received: {name!r}")
    return THEMES[name]


@contextlib.contextmanager
def drawing(theme=LIGHT):
    """A context manager for making and saving figures in a theme's colors.

    Raises:
        MissingExtraError: if Matplotlib is not installed.
    """
    with extras.needed("plots"):
        import matplotlib
    settings = {
        "figure.facecolor": theme.background,
        "savefig.facecolor": theme.background,
        "axes.facecolor": theme.background,
        "axes.edgecolor": theme.muted,
        "axes.labelcolor": theme.muted,
        "axes.titlecolor": theme.ink,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlesize": _FONT_SIZE + 1,
        "axes.labelsize": _FONT_SIZE,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": theme.grid,
        "grid.linewidth": 0.8,
        "font.size": _FONT_SIZE,
        "text.color": theme.ink,
        "text.parse_math": False,  # Names may contain a $.
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "ytick.left": False,
        "lines.linewidth": 2.0,
        "lines.markersize": 5.0,
        "svg.fonttype": "none",
        "svg.hashsalt": "etcmodel",  # Equal pictures become equal text.
    }
    with matplotlib.rc_context(settings):
        yield


def svg(make, name):
    """A picture as part of a page, with colors from a style sheet: see `style_sheet`.

    Args:
        make: function that takes a `Theme` and makes a `matplotlib.figure.Figure` in its colors.
        name: str. Description for screen readers.
    Returns:
        str. An `<svg>` element that fills the available width.
    """
    with drawing(LIGHT):
        buffer = io.StringIO()
        make(LIGHT).savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _as_part_of_page(buffer.getvalue(), name)


def _as_part_of_page(text, name):
    """Removes size, fonts, names and rules, which would interfere with those of the page."""
    text = text[text.index("<svg") :].strip()
    for pattern in (
        r"<metadata>.*?</metadata>\s*",
        r"<style.*?</style>\s*",
        r"(?<=<g) id=\"[^\"]*\"",
        r"font-family: [^;\"]*;? ?",
    ):
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    head, body = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    attributes = f'role="img" aria-label="{html.escape(name)}" stroke-linejoin="round"'
    text = f"{head} {attributes}>{body}"
    for role, color in LIGHT.by_role().items():
        text = text.replace(color, f"var(--{role})")
    return text


def style_sheet():
    """CSS of the colors by role: light, and dark if the reader prefers a dark theme."""
    light, dark = (
        "".join(f"--{role}: {color}; " for role, color in theme.by_role().items())
        for theme in (LIGHT, DARK)
    )
    return (
        f":root {{ color-scheme: light dark; {light}}}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}"
    )
