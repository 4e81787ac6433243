"""The picture of who attends to whom stays readable, whatever its size."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import colors
from matplotlib.backends.backend_agg import FigureCanvasAgg

from etcmodel import attention_picture
from etcmodel.ops.relation_labels import RelationLabels

MASKED = attention_picture.MASKED
NUMBERING = RelationLabels(12, names=("part_of",))
LEGEND = attention_picture.Legend(NUMBERING, names={NUMBERING["part_of"]: "part_of"})


def band(piece, queries, keys):
    """Neighbors, and all pairs of a long and a global token."""
    if piece[0] != piece[2]:
        return np.full([len(queries), len(keys)], NUMBERING.cross)
    return np.where(abs(queries[:, np.newaxis] - keys) < 80, 0, MASKED)


def drawn(num_global, num_long, labels=band, **options):
    """The figure of such a row, each token of which has a name."""
    places = {"g": np.arange(num_global), "l": np.arange(num_long)}
    figure = attention_picture.draw(
        labels,
        LEGEND,
        places=places,
        long_tokens=[f"gypsy{place}" for place in range(num_long)],
        global_tokens=[f"g{place} paragraph" for place in range(num_global)],
        hint="Look at less.",
        **options,
    )
    FigureCanvasAgg(figure).draw()
    return figure


def panels_of(figure):
    return {axes.get_xlabel(): axes for axes in figure.axes if axes.images}


def names_of(axis):
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


SIZES = [(18, 384), (0, 2000), (230, 4096), (1023, 16384), (60, 3), (1, 1), (40, 40)]


@pytest.mark.parametrize("num_global, num_long", SIZES)
def test_no_name_overlaps_another_or_leaves_the_picture(num_global, num_long):
    figure = drawn(num_global, num_long, title="A title\nof two lines")
    canvas = figure.canvas.get_renderer()
    texts = [figure._suptitle, *figure.legends[0].get_texts()]
    for panel in panels_of(figure).values():
        texts += [panel.xaxis.label, *panel.get_xticklabels(), *panel.get_yticklabels()]
    texts = [x for x in texts if x.get_text() and x.get_visible()]
    boxes = [x.get_window_extent(canvas) for x in texts]
    assert len(boxes) > 3
    for box in boxes:
        assert box.x0 >= 0 and box.x1 <= 1200 and box.y0 >= 0 and box.y1 <= 1050
    for (a, text), (b, other) in itertools.combinations(zip(boxes, texts, strict=True), 2):
        is_apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
        assert is_apart, (text, other, a, b)


def test_of_18_and_384_tokens_all_global_names_and_every_so_many_long_ones_are_written():
    panels = panels_of(drawn(18, 384))
    assert list(panels) == ["g2g", "g2l", "l2g", "l2l"]
    expected = [f"g{place} paragraph" for place in range(18)]
    assert names_of(panels["g2g"].yaxis) == names_of(panels["g2g"].xaxis) == expected
    assert names_of(panels["g2l"].yaxis) == names_of(panels["l2l"].xaxis) == []
    down, across = names_of(panels["l2g"].yaxis), names_of(panels["g2l"].xaxis)
    assert down == [f"{place} gypsy{place}" for place in range(0, 384, 20)]
    assert across == [f"{place} gypsy{place}" for place in range(0, 384, 10)]
    np.testing.assert_array_equal(panels["l2g"].get_yticks(), range(0, 384, 20))
    g2g = panels["g2g"].get_window_extent()
    assert g2g.width > 240 and g2g.height > 240  # Dots: 18 rows of 13.


def test_where_tokens_are_left_out_it_says_how_to_see_them():
    *_, last = drawn(18, 384).get_suptitle().splitlines()
    assert last == "Look at less."
    *_, last = drawn(18, 4000).get_suptitle().splitlines()
    assert last == "A row or column stands for 10 long tokens. Look at less."
    assert "Look" not in drawn(3, 20).get_suptitle()
    panels = panels_of(drawn(18, 4000))
    assert panels["l2l"].images[0].get_array().shape == (400, 400, 3)
    assert panels["g2l"].images[0].get_array().shape == (18, 400, 3)


def slow_square(pairs, num_positions):
    """The label of a square, pair by pair."""
    if pairs.max() >= num_positions or pairs[0, 0] == MASKED:
        return pairs.max()
    return pairs[0, 0]


@settings(max_examples=30)
@given(st.data())
def test_a_square_shows_the_highest_label_of_its_pairs_or_a_position(data):
    sizes = [data.draw(st.integers(1, 9)) for _ in range(2)]
    steps = {side: data.draw(st.integers(1, 4)) for side in "gl"}
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    given_labels = {
        f"{a}2{b}": rng.integers(-1, 6, [sizes["gl".index(a)], sizes["gl".index(b)]])
        for a in "gl"
        for b in "gl"
    }
    function, places = attention_picture._by_places(given_labels)
    sides = {x: attention_picture._Side(places[x], (), False) for x in "gl"}
    found = attention_picture._squares(function, sides, steps, num_positions=3)
    for piece, pairs in given_labels.items():
        rows, columns = (steps[side] for side in piece[::2])
        expected = [
            [
                slow_square(pairs[i : i + rows, j : j + columns], 3)
                for j in range(0, pairs.shape[1], columns)
            ]
            for i in range(0, pairs.shape[0], rows)
        ]
        np.testing.assert_array_equal(found[piece], expected)


def test_no_relation_is_lost_in_a_long_row():
    def one_pair(piece, queries, keys):
        labels = band(piece, queries, keys)
        if piece == "l2l":
            is_one = (queries == 4567)[:, np.newaxis] & (keys == 9876)
            labels = np.where(is_one, NUMBERING["part_of"], labels)
        return labels

    figure = drawn(0, 10_000, one_pair)
    (patch,) = (
        patch
        for patch, text in zip(
            figure.legends[0].get_patches(), figure.legends[0].get_texts(), strict=True
        )
        if text.get_text() == "part_of"
    )
    colored = panels_of(figure)["l2l"].images[0].get_array()
    found = np.argwhere((colored == colors.to_rgb(patch.get_facecolor())).all(axis=-1))
    assert found.tolist() == [[4567 // 20, 9876 // 20]]


def test_names_are_written_as_they_are():
    labels = {x: np.zeros([2 * (x[0] == "l"), 2 * (x[2] == "l")], int) for x in ("g2g", "g2l")}
    labels |= {x: np.zeros([2, 2 * (x[2] == "l")], int) for x in ("l2g", "l2l")}
    figure = attention_picture.draw(labels, LEGEND, long_tokens=["$5 or $6", "$\\frac"])
    panel = panels_of(figure)["l2l"]
    assert names_of(panel.yaxis) == ["$5 or $6", "$\\frac"]
    assert not any(label.get_parse_math() for label in panel.get_yticklabels())
    FigureCanvasAgg(figure).draw()


def test_of_many_positions_some_are_named():
    labels = {"l2g": np.zeros([3, 0], int), "l2l": np.zeros([3, 3], int)}
    figure = attention_picture.draw(labels, attention_picture.Legend(RelationLabels(256)))
    names = [x.get_text() for x in figure.axes[-1].get_yticklabels()]
    assert names[0] == "-256 and below" and names[-1] == "+256 and above" and "0" in names
    assert 10 < len(names) <= 25


def test_many_relations_leave_room_for_the_panels():
    names = tuple(f"relation {number}" for number in range(50))
    numbering = RelationLabels(1, names=names)
    legend = attention_picture.Legend(numbering, names={numbering[x]: x for x in names})
    labels = np.resize([numbering[name] for name in names], [50, 50])
    figure = attention_picture.draw({"l2g": np.zeros([50, 0], int), "l2l": labels}, legend)
    FigureCanvasAgg(figure).draw()
    (panel,), (shown,) = panels_of(figure).values(), figure.legends
    box, below = (x.get_window_extent(figure.canvas.get_renderer()) for x in (panel, shown))
    assert len(shown.get_texts()) == 50 and below.x0 >= 0 and below.x1 <= 1200
    assert box.height > 500 and below.y1 < box.y0
