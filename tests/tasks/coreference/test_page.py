"""The commands of the task's page, run as they are written there."""

import json

import pytest

from etcmodel.reports import results
from etcmodel.tasks.coreference import metrics, report
from tests import page
from tests.tasks.coreference import small

pytestmark = pytest.mark.exhaustive


def test_the_commands_run_and_the_model_knows_what_has_which_names(tmp_path):
    page.run_commands("classification.md", tmp_path, having="--dataset=coreference")
    made = tmp_path / "try/coref"
    given = results.Given(str(made / "clusters.json"), str(made / "coreference_dev.jsonl"), {})
    found = report.read_results(given)
    raws = [json.loads(x) for x in (made / "coreference_dev.jsonl").read_text().splitlines()]
    trivial = metrics.scores((raw["clusters"], small.one_cluster(raw)) for raw in raws)["f1"]
    assert found.metrics["f1"] > trivial + 0.2
    export = made / "model/export"
    page.run_python("classification.md", "runs/coreference/export", tmp_path / "page", export)
    text = (made / "dev.conll").read_text(encoding="utf-8")
    assert text.count("#begin document") == text.count("#end document") == 50
