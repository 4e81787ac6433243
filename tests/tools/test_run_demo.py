"""The demo's two models, and its report: what it takes from the runs' files."""

import json

import numpy as np

from etcmodel.models import encoders
from etcmodel.tasks.wikihop import task as wikihop
from etcmodel.tools import run_demo
from etcmodel.tools.demos import report_html, wikihop_long
from etcmodel.training import config as training_config
from etcmodel.training import run as training_run

DEV = wikihop_long.make_examples(split="dev", num_examples=4, seed=0)
ACCURACIES = {"model": 0.75, "without structure": 0.25, "best trivial answer (x)": 0.125}


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


def test_the_report_shows_both_models_by_step_and_the_answers(tmp_path, monkeypatch, capsys):
    write_runs(tmp_path)
    drawn = {}
    render = report_html.render_report

    def render_and_keep(**given):
        drawn.update(given)
        return render(**given)

    monkeypatch.setattr(report_html, "render_report", render_and_keep)
    run_demo.report(tmp_path, ACCURACIES, {raw["id"]: raw["answer"] for raw in DEV})
    assert drawn["dev_curve"] == [
        {"step": 4, "accuracy, model": 0.75},
        {"step": 4, "accuracy, without structure": 0.25},
    ]
    assert drawn["train_curve"] == [
        {"step": 1, "loss, model": 2.0},
        {"step": 1, "loss, without structure": 2.0},
    ]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert all(raw["query"] in page for raw in DEV)
    assert "supporting fact" not in page  # WikiHop has none.
    printed = capsys.readouterr().out
    assert f"Right answer: {DEV[0]['answer']}\nCandidates: {DEV[0]['candidates'][0]}, " in printed
    assert "   0.250  without structure" in printed


def test_the_score_is_of_what_the_exported_model_answered(tmp_path):
    write_runs(tmp_path)
    right = {raw["id"]: raw["answer"] for raw in DEV}
    without = {**right, DEV[0]["id"]: "", DEV[1]["id"]: ""}
    (tmp_path / "without_structure" / "predictions.json").write_text(json.dumps(without))
    model, without_structure, trivial = run_demo.measure(tmp_path, right).values()
    assert (model, without_structure) == (1.0, 0.5)
    assert trivial in (0.0, 0.25, 0.5, 0.75, 1.0)
