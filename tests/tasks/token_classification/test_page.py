"""The commands of the task's page, run as they are written there."""

import json

import pytest

from etcmodel.reports import results
from etcmodel.tasks.token_classification import report
from tests import page

pytestmark = pytest.mark.exhaustive


def test_the_commands_run_and_the_model_reads_the_words_around_names(tmp_path):
    page.run_commands("classification.md", tmp_path, having="--dataset=token_classification")
    made = tmp_path / "try/tags"
    labels = json.loads((made / "train.config.json").read_text(encoding="utf-8"))["labels"]
    given = results.Given(
        str(made / "tags.json"), str(made / "token_classification_dev.jsonl"), {"labels": labels}
    )
    found = report.read_results(given)
    assert found.metrics["f1"] >= 0.9
    page.run_python("classification.md", "run/export", tmp_path / "page", made / "model/export")
    columns = (made / "dev.txt").read_text(encoding="utf-8").splitlines()
    assert {len(line.split()) for line in columns} == {0, 3}
