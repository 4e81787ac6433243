"""The commands of SQuAD's section in docs/triviaqa.md, run as they are written there."""

import json

import pytest

from etcmodel.tasks.squad import examples, metrics
from tests import page

pytestmark = pytest.mark.exhaustive


def test_the_commands_run_and_the_answers_are_learned(tmp_path):
    page.run_commands("triviaqa.md#squad", tmp_path, having="--dataset=squad")
    made = tmp_path / "try/squad"
    gold = list(examples.read_examples(str(made / "squad_dev.json")))
    found = json.loads((made / "answers.json").read_text(encoding="utf-8"))
    assert found == json.loads((made / "model/predictions.json").read_text(encoding="utf-8"))
    assert metrics.metrics(gold, found)["f1"] >= 0.8
    assert (made / "answers_null_odds.json").exists()
    page.run_python("triviaqa.md#squad", "runs/squad/export", tmp_path / "p", made / "model/export")
