"""The commands of the task's page, run as they are written there."""

import json

import pytest

from tests import page

pytestmark = pytest.mark.slow


def test_the_commands_run_and_the_model_reads_both_ends(tmp_path):
    page.run_commands("classification.md", tmp_path, having="--dataset=classification")
    text = (tmp_path / "try/classification/predictions.jsonl").read_text(encoding="utf-8")
    predictions = {told["id"]: told["label"] for told in map(json.loads, text.splitlines())}
    text = (tmp_path / "try/classification/classification_dev.jsonl").read_text(encoding="utf-8")
    gold = {raw["id"]: raw["label"] for raw in map(json.loads, text.splitlines())}
    assert predictions.keys() == gold.keys()
    right = sum(predictions[name] == label for name, label in gold.items())
    export = tmp_path / "try/classification/model/export"
    page.run_python("classification.md", "runs/classification/export", tmp_path / "page", export)
    assert right / len(gold) >= 0.9  # By the last sentences alone, four of five are.
