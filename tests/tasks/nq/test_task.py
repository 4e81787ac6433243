"""The task's evaluation: outputs of the model against a gold file."""

import json
import logging

import pytest

from etcmodel.models import modeling
from etcmodel.tasks.nq import task
from tests.tasks.nq.outputs import ANSWER, window
from tests.tasks.nq.raw_examples import annotation, raw_example

# What `ANSWER` says.
RIGHT = annotation((11, 31), ((14, 16),), candidate_index=-1)


@pytest.fixture
def evaluate(tmp_path):
    """A function of gold lines and outputs to the metrics."""

    def evaluated(lines, outputs):
        gold_file = tmp_path / "gold.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        gold_file.write_text("\n".join(texts))
        config = task.NqConfig(
            encoder_config=modeling.EtcConfig(vocab_size=9),
            eval_gold=str(gold_file),
            predictions_file=str(tmp_path / "predictions.json"),
        )
        return task.NqTask(config).evaluate(iter(outputs))

    return evaluated


def right(example_id):
    return raw_example(example_id=example_id, annotations=[RIGHT, RIGHT])


def test_gives_the_official_metrics_and_writes_the_predictions(evaluate, tmp_path, caplog):
    metrics = evaluate([right(1), right(2)], [window(1, **ANSWER), window(2, **ANSWER)])
    assert metrics["mean-best-threshold-f1"] == metrics["long-answer-precision"] == 1.0
    written = json.loads((tmp_path / "predictions.json").read_text())["predictions"]
    assert [prediction["example_id"] for prediction in written] == [1, 2]
    assert not caplog.records


def test_tells_of_gold_examples_without_a_prediction_which_count_as_missed(evaluate, caplog):
    with caplog.at_level(logging.WARNING):
        metrics = evaluate([right(3), right(1), right(2)], [window(1, **ANSWER)])
    assert metrics["long-answer-recall"] == pytest.approx(1 / 3)
    assert metrics["long-answer-precision"] == 1.0
    (record,) = caplog.records
    assert record.getMessage() == (
        "2 of 3 gold examples have no prediction and count as unanswered, such as 2."
    )


def test_leaves_out_malformed_gold_lines_as_preprocess_does_and_names_them(evaluate, caplog):
    with caplog.at_level(logging.WARNING):
        metrics = evaluate([right(1), "nothing"], [window(1, **ANSWER)])
    assert metrics["long-answer-n"] == 1
    (record,) = caplog.records
    assert "gold.jsonl: line 2: malformed JSON" in record.getMessage()
