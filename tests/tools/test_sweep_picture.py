"""Where the picture of a sweep has its lines."""

import pytest
from matplotlib import colors

from etcmodel.pictures import style
from etcmodel.tools.sweeps import results, study
from etcmodel.tools.sweeps.space import Choices, Plan, Range
from etcmodel.tools.sweeps.study import Row

SPACE = {"learning_rate": Range(1e-5, 1e-3, True), "num_train_epochs": Choices((9, 3, 5))}
BOTTOM, MIDDLE, TOP = 0.06, 0.5, 0.94


def row(number, rate, epochs, best, state="complete"):
    values = {"learning_rate": rate, "num_train_epochs": epochs}
    return Row(number, values, best, 10, state, "run", "", 1.0)


ROWS = [
    row(0, 1e-5, 3, 4.0),
    row(1, 1e-4, 5, 2.0),
    row(2, 1e-3, 9, 3.0),
    row(3, 1e-4, 9, 1.0, "pruned"),
]


@pytest.fixture(scope="module")
def panel():
    goal = study.Goal("bits_per_character", higher_is_better=False)
    plan = Plan(
        folder="x",
        program="char_lm",
        command=(),
        title="etcmodel train char_lm",
        space=SPACE,
        sampler="tpe",
        num_trials=4,
    )
    with style.drawing():
        return results.drawn(plan, results.ranked(ROWS, goal), goal).axes[0]


def lines(panel):
    """The trials' lines, the last drawn first: [(heights, color, style)]."""
    found = [line for line in panel.lines if len(line.get_xdata()) == 3]
    return [
        (list(line.get_ydata()), line.get_color(), line.get_linestyle()) for line in found[::-1]
    ]


def test_lines_go_through_the_values_and_a_better_metric_is_higher_up(panel):
    expected = [
        [MIDDLE, TOP, TOP],  # Trial 3, whose 1 bit is the least.
        [MIDDLE, MIDDLE, TOP - (TOP - BOTTOM) / 3],
        [TOP, TOP, TOP - (TOP - BOTTOM) * 2 / 3],
        [BOTTOM, BOTTOM, BOTTOM],
    ]
    found = [heights for heights, *_ in lines(panel)]
    assert found == [pytest.approx(heights) for heights in expected]


def test_the_best_is_of_those_that_went_to_the_end(panel):
    _, drawn, dashes = zip(*lines(panel), strict=True)
    assert dashes == ("--", "-", "-", "-")
    orange = style.LIGHT.series[1]
    assert drawn[1] == orange and orange not in (drawn[0], *drawn[2:])
    assert drawn[0] == style.LIGHT.muted  # Of the one that was pruned.
    assert len(set(drawn)) == len(drawn)  # The others' are the darker, the better they are.
    texts = [text.get_text() for text in panel.texts]
    assert "trial 1: 2" in texts


def test_axes_have_human_names_and_tell_the_direction(panel):
    names = [label.get_text() for label in panel.get_xticklabels()]
    assert names == [
        "learning rate\n(log scale)",
        "train epochs",
        "bits per character\n(lower is better)",
    ]
    texts = {text.get_text() for text in panel.texts}
    assert {"1e-05", "0.001", "3", "5", "9", "1", "2.5", "4"} <= texts
    assert panel.get_title(loc="left").splitlines() == [
        "Sweep of char lm: the best bits per character of 4 trials",
        "A line is a trial; darker lines are better ones, and the best is orange.",
        "Dashed: 1 that did not go to the end, at their best so far.",
    ]


def test_on_a_dark_ground_better_lines_are_brighter():
    goal = study.Goal("bits_per_character", higher_is_better=False)
    tpe = {"sampler": "tpe", "num_trials": 4}
    plan = Plan(folder="x", program="char_lm", command=(), title="", space=SPACE, **tpe)
    rows = results.ranked(ROWS, goal)
    with style.drawing(style.DARK):
        panel = results.drawn(plan, rows, goal, style.DARK).axes[0]
    shades = [color for _, color, dash in lines(panel) if dash == "-"]
    assert shades[0] == style.DARK.series[1]
    better, worse = (sum(colors.to_rgb(color)) for color in shades[1:])
    assert better > worse > sum(colors.to_rgb(style.DARK.background))
    assert "brighter lines are better" in panel.get_title(loc="left")
