"""The demo's report: what it takes from the run's files."""

import json

from etcmodel.tools import report_html, run_demo
from tests.tasks.hotpotqa.raw_examples import raw_example

FIGURES = {"em": 0.5, "f1": 0.75, "sp_em": 0.25, "sp_f1": 0.5, "joint_em": 0.0, "joint_f1": 0.25}


def test_counts_of_answers_are_not_drawn_beside_shares(tmp_path, monkeypatch, capsys):
    (tmp_path / "hotpotqa_dev.json").write_text(json.dumps([raw_example()]))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "train_metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    measured = {"step": 4, **FIGURES, "prec": 0.5, "counts/A_B": 60.0, "percentages/A_B": 0.6}
    (tmp_path / "model" / "eval_metrics.jsonl").write_text(json.dumps(measured) + "\n")
    drawn = {}
    render = report_html.render_report

    def render_and_keep(**given):
        drawn.update(given)
        return render(**given)

    monkeypatch.setattr(report_html, "render_report", render_and_keep)
    predictions = {"answer": {"q1": "rose"}, "sp": {"q1": [["one", 1]]}}
    run_demo.report(tmp_path, FIGURES, FIGURES, predictions)
    assert drawn["dev_curve"] == [{"step": 4, **FIGURES}]
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "joint_f1            0.250     0.250" in capsys.readouterr().out
