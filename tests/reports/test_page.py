"""The page: that no text breaks out of it, that it loads nothing, and what its numbers are."""

import base64
import hashlib
import json
import math
import re

import lxml.html
import pytest

from etcmodel.reports import page, results, run_files
from etcmodel.tools import report

HOSTILE = "</script><script>alert('x')</script> & <img src=x onerror=y> \x1b[2J {{ 7 * 7 }}"
TRAIN = [
    {"step": step, "loss": 8 / step, "learning_rate": 1e-3, "examples_per_second": 30.0}
    for step in (2, 4, 8)
]
EVAL = [{"step": 4, "f1": 0.25, "sp_f1": 0.5}, {"step": 8, "f1": 0.125, "sp_f1": 0.75}]


def write_run(folder):
    config = {"training": {"learning_rate": 0.1}, "task": {"a": {"b": [1, 2]}}}
    notes = {"num_train_steps": 8, "vocab_file": HOSTILE}
    (folder / "run_config.json").write_text(json.dumps({**config, "notes": notes}))
    for name, rows in (("train", TRAIN), ("eval", EVAL)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}_metrics.jsonl").write_text(text)
    return folder


def item(number, **changes):
    texts = {name: f"{name} {number}" for name in ("key", "question", "prediction", "gold")}
    return results.Item(**{**texts, "is_right": number % 2 == 0, "score": 0.5, **changes})


def found(items, **changes):
    values = {"metrics": {"f1": 0.5}, "best_metric": "f1", "baselines": {"none": {"f1": 0.25}}}
    values |= {"noun": "questions", "score_name": "F1"}
    return results.Results(items=tuple(items), **{**values, **changes})


@pytest.fixture(scope="module")
def run_page(tmp_path_factory):
    """The text of a page of a run alone, as the program writes it."""
    folder = write_run(tmp_path_factory.mktemp("run"))
    output = folder / "report.html"
    report.write_report(report.ReportOptions(run=str(folder), output=str(output)))
    assert not [x for x in folder.iterdir() if "unfinished" in x.name]
    return output.read_text(encoding="utf-8")


def test_the_scores_are_those_of_the_metrics_file(run_page):
    tree = lxml.html.fromstring(run_page)
    rows = [
        [cell.text_content() for cell in row] for row in tree.xpath("//section[@id='scores']//tr")
    ]
    assert rows == [["score", "this run"], ["F1", "12.5 %"], ["F1, supporting facts", "75.0 %"]]
    assert "at step 8." in tree.xpath("string(//section[@id='scores']/p)")
    settings = [cell.text_content() for cell in tree.xpath("//section[@id='settings']//tr/*")]
    assert settings[:4] == ["learning_rate", "0.1", "a.b", "1, 2"]


def test_each_meaning_has_its_own_chart(run_page):
    tree = lxml.html.fromstring(run_page)
    assert [svg.get("aria-label") for svg in tree.xpath("//figure/svg")] == [
        "F1, % (higher is better)",
        "Loss (lower is better)",
        "Learning rate",
        "Speed, examples per second (higher is better)",
    ]


def test_nothing_is_loaded_and_only_our_script_may_run(run_page):
    tree = lxml.html.fromstring(run_page)
    assert not tree.xpath("//@src | //link | //iframe | //object | //*[@onclick or @onload]")
    hrefs = {str(x) for x in tree.xpath("//@href | //*/@*[name()='xlink:href']")}
    assert all(href.startswith("#") for href in hrefs)
    assert not re.search(r"url\((?!#)|@import", run_page)
    (script,) = tree.xpath("//script")
    digest = hashlib.sha256(script.text_content().encode()).digest()
    (policy,) = tree.xpath("//meta[@http-equiv]/@content")
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none';")


def test_hostile_text_stays_text(tmp_path):
    run = run_files.RunFiles.read(str(write_run(tmp_path)))
    texts = dict.fromkeys(("key", "question", "prediction", "gold"), HOSTILE)
    passages = (results.Passage(HOSTILE, (("plain", HOSTILE), ("wrong", HOSTILE))),)
    marked = {"marked_gold": (HOSTILE,), "marked_predicted": ("img",), "candidates": (HOSTILE,)}
    others = ((HOSTILE, HOSTILE, False),)
    one = item(0, **texts, passages=passages, others=others, **marked)
    told = found([one], baselines={HOSTILE: {"f1": 0.25, HOSTILE: 1.0}}, system=HOSTILE)
    said = {"headline": HOSTILE, "lead": HOSTILE}
    text = page.render(title=HOSTILE, run=run, results=told, curve_charts=[], **said)
    tree = lxml.html.fromstring(text)
    assert len(tree.xpath("//script")) == 1
    assert not tree.xpath("//img | //*[@onerror]")
    assert "\x1b" not in text and "{{ 7 * 7 }}" in text
    shown = HOSTILE.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert [tree.xpath(f"string(//*[@id='headline']/p[{i}])") for i in (1, 2)] == [shown, shown]
    assert tree.xpath("string(//article/h3)") == shown
    assert tree.xpath("string(//article//details/p)") == shown
    assert tree.xpath("string(//article//li)") == shown
    assert tree.xpath("//article//dt/text()")[:2] == [shown, shown]


def test_lines_end_alike_wherever_they_were_written():
    passages = (results.Passage("", (("plain", "Dear Sir,\r\nyour parcel\ris here\n"),)),)
    one = item(0, passages=passages, marked_gold=("sir,\r\nyour",))
    tree = lxml.html.fromstring(page.render(title="t", results=found([one])))
    assert tree.xpath("string(//article//details/p)") == "Dear Sir,\nyour parcel\nis here\n"
    assert tree.xpath("string(//article//details/p/mark)") == "Sir,\nyour"


def test_a_page_shows_the_first_examples_and_counts_all():
    told = found([item(number) for number in range(5)])
    tree = lxml.html.fromstring(page.render(title="t", results=told, num_examples=2))
    assert tree.xpath("//article/h3/text()") == ["question 0", "question 1"]
    assert tree.xpath("string(//*[@id='shown'])") == "the first 2 of 5 questions"
    headline = " ".join(tree.xpath("string(//section[@id='headline'])").split())
    assert headline.startswith(
        "50.0 % F1 (higher is better), on 5 questions (95 % interval: 17.0 to 83.0 %)"
    )
    assert "25.0 % for comparison: none" in headline


def test_a_headline_of_ones_own_comes_with_what_was_measured():
    one = item(0, others=(("other", "", False),))
    told = found([one], system="ours", baselines={"other": {"f1": 0.25}})
    tree = lxml.html.fromstring(page.render(title="t", results=told, headline="Two", lead="Why."))
    texts = [" ".join(x.text_content().split()) for x in tree.xpath("//*[@id='headline']/p")]
    assert texts[:2] == ["Two", "Why."] and texts[2].startswith("F1 50.0 % (higher is better)")
    assert tree.xpath("//*[@id='scores']//thead//th/text()") == ["score", "ours", "other"]
    answers = [x.text_content() for x in tree.xpath("//article//dt | //article//dd")]
    assert answers[:6] == ["ours", "✓ prediction 0", "other", "✗ (none)", "Expected", "gold 0"]


def test_a_headline_needs_no_results():
    tree = lxml.html.fromstring(page.render(title="t", headline="Two"))
    assert tree.xpath("string(//section)").strip() == "Two"


def test_candidates_are_marked_as_a_whole_and_many_are_folded():
    marked = {"marked_gold": ("oak",), "marked_predicted": ("Oak tree",)}
    items = [
        item(0, candidates=("pine", "Oak", "oak tree"), **marked),
        item(1, candidates=tuple(map(str, range(13)))),
    ]
    tree = lxml.html.fromstring(page.render(title="t", results=found(items)))
    few, many = tree.xpath("//details[@class='candidates']")
    assert [(x.get("class"), x.text) for x in few.xpath(".//mark")] == [
        ("gold", "Oak"),
        ("predicted", "oak tree"),
    ]
    assert few.xpath(".//li/text()") == ["pine"]
    assert "open" in few.attrib and "open" not in many.attrib
    assert many.xpath("string(summary)") == "13 candidates"


def test_scores_by_place_are_means_of_fifths():
    bars = page.place_bars([(0.0, 1.0), (0.19, 0.0), (0.2, 1.0), (0.99, 0.5), (1.0, 0.0)])
    assert [(bar.count, bar.share) for bar in bars] == [
        (2, 0.5),
        (1, 1.0),
        (0, None),
        (0, None),
        (2, 0.25),
    ]
    assert [bar.shown for bar in bars[1:3]] == ["100.0 %", "–"]
    told = found([item(0)], places=results.Places("F1", "it", ((0.1, 0.25),)))
    tree = lxml.html.fromstring(page.render(title="t", results=told))
    (row, *_) = tree.xpath("//section[@id='places']//tbody/tr")
    assert [x.text_content().strip() for x in row] == ["first fifth", "n = 1", "25.0 %"]


def test_the_interval_is_wilsons():
    # The ends are the shares from which what was seen is 1.96 standard deviations away.
    for mean, count in ((0.5, 5), (0.2, 100), (1.0, 200), (0.0, 1)):
        for end in page.interval(mean, count):
            distance = abs(mean - end)
            assert distance**2 == pytest.approx(1.96**2 * end * (1 - end) / count, abs=1e-12)


def test_figures_of_both_sources_share_a_chart_and_many_points_are_thinned():
    rows = [{"step": step, "loss": float(step)} for step in range(1, 1002)]
    (chart,) = page.charts_of_run(rows, [{"step": 9, "loss": 0.5}])
    training, evaluation = chart.lines
    assert (training.label, evaluation.label) == ("training", "evaluation")
    assert evaluation.points == ((9, 0.5),)
    assert training.points[0] == (1, 1.0) and training.points[-1] == (1001, 1001.0)
    assert len(training.points) <= 401


def test_values_that_are_no_finite_numbers_are_left_out():
    rows = [
        {"step": 1, "loss": 2.0, "gradient_norm": math.inf, "note": "a text"},
        {"step": 2, "loss": math.nan, "gradient_norm": None},
    ]
    (chart,) = page.charts_of_run(rows, [])
    (line,) = chart.lines
    assert chart.title == "Loss (lower is better)" and line.points == ((1, 2.0),)
    run = run_files.RunFiles("it", {}, {}, {}, [], rows, best_step=2)
    tree = lxml.html.fromstring(page.render(title="t", run=run, curve_charts=[]))
    shown = [cell.text_content() for cell in tree.xpath("//section[@id='scores']//td")]
    assert shown == ["nan"]


@pytest.mark.parametrize(("training", "last"), [({}, "9,000"), ({"stop_at_step": 2000}, "2,000")])
def test_a_run_ends_where_it_was_to_stop(training, last):
    rows, notes = [{"step": 1200, "loss": 2.0}], {"num_train_steps": 9000}
    run = run_files.RunFiles("it", training, {}, notes, rows, [], best_step=None)
    assert f"it, trained for 1,200 of {last} steps" in page.render(
        title="t", run=run, curve_charts=[]
    )


def test_answers_are_marked_as_whole_words():
    text = "Oak, oaken pine; PINE"
    assert page.spans(text, ["oak"], ["pine"]) == [
        ("Oak", "gold"),
        (", oaken ", "plain"),
        ("pine", "predicted"),
        ("; ", "plain"),
        ("PINE", "predicted"),
    ]
    assert page.spans("oak", ["oak"], ["Oak"]) == [("oak", "both")]
    assert page.spans(text, [""], [" "]) == [(text, "plain")]


def test_long_texts_are_cut_around_the_evidence():
    text = "a" * 5000 + "HERE" + "b" * 5000
    cut = results.clipped(text, 5000)
    assert "HERE" in cut and cut.startswith("… a") and cut.endswith("b …")
    assert len(cut) < 3100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Give --run, or"),
        ({"run": "x", "task": "nq"}, "belong together"),
        ({"run": "x", "evidence_dir": "y"}, "--evidence_dir is of --task=triviaqa alone"),
    ],
)
def test_what_is_missing_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        report.ReportOptions(**options)


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(ValueError, match="holds no run_config.json"):
        run_files.RunFiles.read(str(tmp_path))
