"""Scores beside their baselines, and by the position of the evidence."""

import math
from typing import NamedTuple

from etcmodel.pictures import metric_names

__all__ = ["Bar", "Row", "interval", "place_bars", "score_rows"]

_PARTS = ("first", "second", "third", "fourth", "last")
_NORMAL_95 = 1.96  # Standard deviations on each side that hold 95 % of a normal distribution.


class Row(NamedTuple):
    """A row of the table of scores."""

    name: str
    is_lower_better: bool
    values: tuple  # Of str; "–" if a system lacks the metric.
    is_main: bool


class Bar(NamedTuple):
    """The mean score for a part of the input."""

    name: str
    count: int
    share: float | None  # In [0, 1]; None without examples.

    @property
    def shown(self):
        """The score in readable form: str."""
        return "–" if self.share is None else f"{100 * self.share:.1f} %"


def score_rows(systems, main=""):
    """The table of scores: the main metric first, descriptions of the data last.

    Args:
        systems: list of dict of float, the run's own metrics first.
        main: str. Name of the main metric.
    Returns:
        list of `Row`.
    """
    names = dict.fromkeys(name for metrics in systems for name in metrics if name != "step")
    described = {name: metric_names.describe(name) for name in names}
    order = sorted(names, key=lambda name: (name != main, described[name].is_setting))
    return [
        Row(
            described[name].name,
            described[name].direction == metric_names.LOWER,
            tuple(described[name].shown(x[name]) if name in x else "–" for x in systems),
            name == main,
        )
        for name in order
    ]


def interval(mean, count):
    """The 95 % interval of a mean of values in [0, 1], by Wilson's score method.

    It is meant for values that are 0 or 1; for others it is wider than necessary.

    Args:
        mean: float.
        count: int. Number of values, at least one.
    Returns:
        (float, float) in [0, 1].
    """
    square = _NORMAL_95**2 / count
    middle = (mean + square / 2) / (1 + square)
    half = math.sqrt(square * (mean * (1 - mean) + square / 4)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def place_bars(points):
    """Mean scores for the fifths of the input.

    Args:
        points: iterable of (position, score), both in [0, 1].
    Returns:
        list of `Bar`.
    """
    fifths = [[] for _ in _PARTS]
    for place, score in points:
        fifths[min(int(place * len(_PARTS)), len(_PARTS) - 1)].append(score)
    return [
        Bar(f"{name} fifth", len(scores), sum(scores) / len(scores) if scores else None)
        for name, scores in zip(_PARTS, fifths, strict=True)
    ]
