"""How pictures look: contrast, labels that do not meet, plain numbers, and human names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import image

from etcmodel.pictures import charts, metric_names, style


def luminance(color):
    """As the Web Content Accessibility Guidelines define it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [style.LIGHT, style.DARK])
def test_words_in_every_color_are_read_easily(theme):
    ground = luminance(theme.background)
    for color in (theme.ink, theme.muted, *theme.series):
        lighter, darker = sorted([ground, luminance(color)], reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, color
    assert len(set(theme.by_role().values())) == len(theme.by_role())


def test_both_themes_have_the_same_roles():
    assert style.LIGHT.by_role().keys() == style.DARK.by_role().keys()
    sheet = style.style_sheet()
    assert "--series-0: #0067a3" in sheet.split("@media")[0]
    assert "--series-0: #5cb8ee" in sheet.split("@media")[1]


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_labels_keep_their_order_and_do_not_overlap(places):
    moved = charts._apart(places, 0.1)
    order = sorted(range(len(places)), key=lambda i: places[i])
    for low, high in zip(order, order[1:], strict=False):
        assert moved[high] - moved[low] >= 0.1 - 1e-9
    assert sum(moved) == pytest.approx(sum(places))


def test_labels_that_are_apart_stay():
    assert charts._apart([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])


def drawn(chart):
    with style.drawing():
        figure = charts.draw([chart])
        figure.canvas.draw()
        (panel,) = figure.axes
        ticks = [x.get_text() for x in panel.get_xticklabels()]
        return panel, ticks, [x.get_text() for x in panel.texts if x.get_text()]


def test_a_logarithmic_axis_has_plain_ticks_and_lines_have_their_names():
    points = tuple((length, length / 100) for length in (512, 4096, 16384))
    lines = (charts.Line("etc", points), charts.Line("bert", points[:2], is_reference=True))
    panel, ticks, names = drawn(charts.Chart("Seconds", "tokens", lines, is_log=True))
    assert ticks == ["512", "4,096", "16,384"]
    assert names == ["etc", "bert"]
    assert panel.get_legend() is None
    assert [line.get_xydata().tolist() for line in panel.lines] == [
        [list(point) for point in line.points] for line in lines
    ]


def test_more_lines_than_colors_are_told_apart():
    lines = tuple(charts.Line(str(y), ((1, y), (2, y))) for y in range(1, 10))
    panel, _, _ = drawn(charts.Chart("Seconds", "tokens", lines))
    looks = [(line.get_color(), line.get_linestyle()) for line in panel.lines]
    assert len(set(looks)) == 9 and looks[7] == (looks[0][0], ":")


def test_a_picture_in_a_page_takes_the_colors_of_its_style_sheet():
    chart = charts.Chart("A <b>", "x", (charts.Line("", ((1, 2.0), (2, 3.0))),))
    text = style.svg(lambda theme: charts.draw([chart], theme), chart.title)
    assert text.startswith("<svg") and text.endswith("</svg>")
    assert 'aria-label="A &lt;b&gt;"' in text and "A <b>" not in text
    assert "var(--series-0)" in text and "var(--ink)" in text
    assert not any(color in text for color in style.LIGHT.by_role().values())
    assert "width=" not in text.split(">")[0]
    assert text == style.svg(lambda theme: charts.draw([chart], theme), chart.title)


def test_names_are_no_formulas():
    chart = charts.Chart("Costs in $ and $\\foo", "x", (charts.Line("", ((1, 2.0), (2, 3.0))),))
    text = style.svg(lambda theme: charts.draw([chart], theme), chart.title)
    assert ">Costs in $ and $\\foo</text>" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (512, "512"),
        (16384, "16,384"),
        (0.25, "0.25"),
        (3e-5, "3e-05"),
        (1.23456, "1.235"),
    ],
)
def test_numbers_are_plain(value, shown):
    assert charts.number(value) == shown


@pytest.mark.parametrize(
    ("name", "title", "subject"),
    [
        ("f1", "F1, % (higher is better)", ""),
        ("sp_f1", "F1, % (higher is better)", "supporting facts"),
        ("joint_em", "Exact match, % (higher is better)", "answer and facts jointly"),
        ("loss", "Loss (lower is better)", ""),
        ("answer_type_loss", "Loss (lower is better)", "answer type"),
        ("rouge2", "ROUGE, F-measure, % (higher is better)", "pairs of words (ROUGE-2)"),
        ("recall@3", "Recall, % (higher is better)", "first 3 phrases"),
        (
            "long-best-threshold-f1",
            "F1 at the best threshold, % (higher is better)",
            "long answers",
        ),
        ("short-answer-n", "Questions", "short answers"),
        ("expected_calibration_error", "Calibration error, % (lower is better)", ""),
        ("mlm_accuracy", "Accuracy, % (higher is better)", "masked words"),
        ("cpc_chance", "Accuracy, % (higher is better)", "by chance"),
        (
            "unigram_bits_per_character",
            "Bits per character (lower is better)",
            "by frequency alone",
        ),
        ("counts/A_B", "Number of answers", "other answers answered with another span"),
        ("counts/A_C", "counts/A C", ""),
        ("exact_match_sum", "Exact match, % (higher is better)", "sum"),
        ("examples_per_second", "Speed, examples per second (higher is better)", ""),
        ("my_own", "my own", ""),
    ],
)
def test_metrics_have_human_names(name, title, subject):
    metric = metric_names.describe(name)
    assert (metric.title, metric.subject) == (title, subject)


def test_shares_are_in_per_cent():
    assert metric_names.describe("f1").shown(0.7134) == "71.3 %"
    assert metric_names.describe("long-answer-n").shown(7830.0) == "7,830"
    assert metric_names.describe("mse").shown(0.48211) == "0.4821"


@pytest.mark.parametrize("name", style.THEMES)
def test_a_file_has_the_ground_of_its_theme(tmp_path, name):
    theme, path = style.THEMES[name], tmp_path / "chart.png"
    chart = charts.Chart("Loss", "step", (charts.Line("ours", ((1, 2.0), (2, 1.0))),))
    charts.save_png([chart], path, title="It falls", theme=theme)
    pixels = (image.imread(path)[..., :3] * 255).round().astype(int) @ [1 << 16, 1 << 8, 1]
    found = {f"#{pixel:06x}" for pixel in np.unique(pixels)}
    assert {theme.background, theme.series[0]} <= found
    assert found.isdisjoint({"#000000", style.THEMES["dark" if name == "light" else "light"].ink})
