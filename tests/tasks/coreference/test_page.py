"""The commands of the task's page, run as they are written there."""

import pytest

from etcmodel.reports import results
from etcmodel.tasks.coreference import report
from tests import page

pytestmark = pytest.mark.exhaustive


def test_the_commands_run_and_the_model_knows_what_has_which_names(tmp_path):
    page.run_commands("classification.md", tmp_path, having="--dataset=coreference")
    made = tmp_path / "try/coref"
    given = results.Given(str(made / "clusters.json"), str(made / "coreference_dev.jsonl"), {})
    found = report.read_results(given)
    assert found.metrics["f1"] > max(x["f1"] for x in found.baselines.values()) + 0.2
    export = made / "model/export"
    page.run_python("classification.md", "runs/coreference/export", tmp_path / "page", export)
    text = (made / "dev.conll").read_text(encoding="utf-8")
    assert text.count("#begin document") == text.count("#end document") == 50
