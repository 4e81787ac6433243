"""Longformer's way from raw files to answers, with windows and answers by document."""

import json

import pytest

from etcmodel.tasks.triviaqa import predict
from tests.tasks import programs, small_encoders, stopping
from tests.tasks.triviaqa import questions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data and a trained model."""
    folder = tmp_path_factory.mktemp("longformer")
    paths = questions.write_demo_records(folder, 600, 40, global_seq_length=32)
    with open(paths["vocab"], encoding="utf-8") as file:
        size = len(file.readlines())
    config = small_encoders.entries(
        "longformer", size, 96, num_hidden_layers=2, attention_window=32
    )
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    programs.fine_tune(
        "triviaqa",
        run_mode="train",
        model_config_file=folder / "config.json",
        vocab_file=paths["vocab"],
        train_data=folder / "train-*.tfrecord",
        output_dir=folder / "run",
        train_batch_size=16,
        learning_rate=4e-3,
        num_train_epochs=9,
    )
    return folder


def evaluate(folder, capsys, **flags):
    """(metrics, predictions) of the run."""
    programs.fine_tune(
        "triviaqa",
        run_mode="evaluate",
        output_dir=folder / "run",
        eval_data=folder / "dev-*.tfrecord",
        eval_gold=folder / "triviaqa_dev.json",
        **flags,
    )
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    return metrics, json.loads((folder / "run" / "predictions.json").read_text())


@pytest.mark.parametrize("answer_score", ["best", "sum"])
def test_answers_are_learned_from_windows(folder, capsys, answer_score):
    metrics, predictions = evaluate(folder, capsys, answer_score=answer_score)
    assert metrics["em"] >= 0.8 and metrics["f1"] >= metrics["em"]
    assert len(predictions) == 40


@pytest.mark.exhaustive
def test_an_export_answers_by_document_and_skips_questions_without_any(
    folder, capsys, caplog, tmp_path
):
    metrics, evaluated = evaluate(folder, capsys, by_document=True)
    assert metrics["em"] <= 0.5 and len(evaluated) == 80  # One of two documents has it.
    programs.fine_tune("triviaqa", run_mode="export", output_dir=folder / "run")
    raw = json.loads((folder / "triviaqa_dev.json").read_text(encoding="utf-8"))
    raw["Data"][1]["EntityPages"] = [{"Filename": "none.txt"}]
    for question in raw["Data"]:
        del question["Answer"]
    (folder / "questions.json").write_text(json.dumps(raw), encoding="utf-8")
    programs.fine_tune(
        "triviaqa",
        run_mode="predict",
        export_dir=folder / "run" / "export",
        evidence_dir=folder / "evidence",
        input_file=folder / "questions.json",
        predictions_file=folder / "answers.json",
        by_document=True,
    )
    predicted = json.loads((folder / "answers.json").read_text())
    assert "element 1: example 'demo_dev_1': wikipedia/none.txt: no such file in" in caplog.text
    assert predicted == {
        key: answer for key, answer in evaluated.items() if not key.startswith("demo_dev_1--")
    }
    options = {"evidence_dir": str(folder / "evidence"), "by_document": True}
    predictor = predict.TriviaQaPredictor(str(folder / "run" / "export"), **options)
    stopping.assert_a_stopped_prediction_goes_on(predictor, folder / "questions.json", tmp_path)
    assert json.loads((tmp_path / "stopped.json").read_text()) == predicted
    details = (tmp_path / "stopped_details.jsonl").read_bytes()
    assert details == (tmp_path / "whole_details.jsonl").read_bytes()
