"""The demo's two models, and its report: what it takes from the runs' files."""

import json

import lxml.html
import numpy as np
import pytest

from etcmodel.models import encoders
from etcmodel.tasks.wikihop import task as wikihop
from etcmodel.tools import run_demo
from etcmodel.tools.demos import wikihop_long
from etcmodel.training import config as training_config
from etcmodel.training import run as training_run

DEV = wikihop_long.make_examples(split="dev", num_examples=6, seed=0)


def test_both_models_begin_with_the_same_weights():
    config = encoders.config_from_dict({**run_demo.ETC_CONFIG, "vocab_size": 200})
    options = training_config.TrainingConfig(output_dir="unused", random_seed=3)
    models = [
        training_run.build_model(
            wikihop.WikiHopTask(
                wikihop.WikiHopConfig(
                    encoder_config=config, enable_l2g_linking=is_linked, **run_demo.LENGTHS
                )
            ),
            options,
        )
        for is_linked in (True, False)
    ]
    first, second = (model.get_weights() for model in models)
    assert len(first) > 50
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def write_runs(folder):
    (folder / "wikihop_long_dev.json").write_text(json.dumps(DEV))
    (folder / "wikihop_long_train.json").write_text(json.dumps(DEV[:1]))
    for name, accuracy in (("model", 0.75), ("without_structure", 0.25)):
        (folder / name).mkdir()
        (folder / name / "train_metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
        line = json.dumps({"step": 4, "accuracy": accuracy})
        (folder / name / "eval_metrics.jsonl").write_text(line + "\n")


def write_page(folder, predictions):
    """The page of a model's predictions, beside one that is wrong on the first two: its path."""
    write_runs(folder)
    without = {raw["id"]: raw["answer"] for raw in DEV}
    without |= {raw["id"]: wrong_answer(raw) for raw in DEV[:2]}
    (folder / "predictions.json").write_text(json.dumps(predictions))
    (folder / "without_structure" / "predictions.json").write_text(json.dumps(without))
    run_demo.report(folder, run_demo.measure(folder, predictions))
    return folder / "report.html"


@pytest.fixture
def report_page(tmp_path):
    """The page of a model that is right."""
    path = write_page(tmp_path, {raw["id"]: raw["answer"] for raw in DEV})
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    return lxml.html.fromstring(text)


def wrong_answer(raw):
    return next(x for x in raw["candidates"] if x != raw["answer"])


def test_the_page_says_what_was_measured_and_why(report_page):
    assert report_page.xpath("string(//p[@class='said'])") == (
        "100 % right with structure, 67 % without"
    )
    assert "attends to 21 of up to 304" in report_page.xpath("string(//p[@class='lead'])")
    names = report_page.xpath("//*[@id='scores']//thead//th/text()")
    assert names[:3] == ["score", "with structure", "without structure"]
    assert names[3].startswith("best trivial answer (")
    figures = report_page.xpath("//*[@id='scores']//td/text()")
    assert figures[:2] == ["100.0 %", "66.7 %"]


def test_the_page_has_questions_and_answers_of_both_models_in_words(report_page):
    articles = report_page.xpath("//article")
    for number, (article, raw) in enumerate(zip(articles, DEV, strict=True)):
        assert article.xpath("string(h3)") == raw["query"]
        symbol, other = ("✗", wrong_answer(raw)) if number < 2 else ("✓", raw["answer"])
        right = raw["answer"]
        assert [x.text_content() for x in article.xpath("dl/dd")[:3]] == [
            f"✓ {right}",
            f"{symbol} {other}",
            right,
        ]
        shown = [x.text_content() for x in article.xpath(".//li")]
        assert shown == raw["candidates"]
        assert article.xpath(".//li/mark[@class='both']/text()") == [right]


def test_the_page_has_the_curves_of_both_models(report_page):
    shown = {x.get("aria-label"): x.text_content() for x in report_page.xpath("//figure/svg")}
    assert list(shown) == ["Accuracy, % (higher is better)", "Loss (lower is better)"]
    assert all(name in text for text in shown.values() for name in run_demo.SYSTEMS.values())


def test_the_curves_are_those_of_the_runs(tmp_path):
    write_runs(tmp_path)
    accuracy, loss = run_demo.curve_charts(tmp_path)
    assert [(line.label, line.points) for line in accuracy.lines] == [
        ("with structure", ((4, 75.0),)),
        ("without structure", ((4, 25.0),)),
    ]
    assert [line.points for line in loss.lines] == [((1, 2.0),)] * 2


def test_the_terminal_shows_a_question_and_the_accuracies(capsys, tmp_path):
    write_page(tmp_path, {raw["id"]: raw["answer"] for raw in DEV})
    printed = capsys.readouterr().out
    assert DEV[0]["query"] in printed
    assert f"  right, with structure: {DEV[0]['answer']}\n  wrong, without" in printed
    assert "   1.000  with structure\n   0.667  without structure" in printed


@pytest.mark.parametrize(("share", "told"), [(1.0, "100 %"), (0.998, "99 %"), (0.142, "14 %")])
def test_all_are_right_only_where_all_are(share, told):
    accuracies = {"with structure": share, "without structure": 0.0, "trivial": 0.5}
    assert run_demo.headline(accuracies) == f"{told} right with structure, 0 % without"


def test_the_score_is_of_what_the_exported_model_answered(tmp_path):
    write_runs(tmp_path)
    right = {raw["id"]: raw["answer"] for raw in DEV}
    without = right | {raw["id"]: "" for raw in DEV[:3]}
    (tmp_path / "without_structure" / "predictions.json").write_text(json.dumps(without))
    model, without_structure, trivial = run_demo.measure(tmp_path, right).values()
    assert (model, without_structure) == (1.0, 0.5)
    assert trivial in [number / 6 for number in range(7)]
