"""The commands of docs/summarization.md, as they stand there."""

import json

import pytest

from tests import page

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands were run, and what they printed in `log`."""
    folder = tmp_path_factory.mktemp("summarization")
    (folder / "log").write_text(page.run_commands("summarization.md#the-program", folder))
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_names_are_found_behind_the_distance(folder):
    logged = (folder / "log").read_text().splitlines()
    (metrics,) = (json.loads(line) for line in logged if line.startswith("{"))
    assert metrics["rouge1"] >= 0.8 and metrics["rouge2"] >= 0.7  # By chance 0.09 and 0.01.


def test_the_exported_model_summarizes_raw_documents(folder):
    made = folder / "try" / "summaries"
    gold = {
        raw["article_id"]: raw["abstract_text"] for raw in lines(made / "summarization_dev.jsonl")
    }
    found = lines(made / "predictions.jsonl")
    assert [x["id"] for x in found] == list(gold)
    right = [[f"<S> {x['summary']} </S>"] == gold[x["id"]] for x in found]
    assert sum(right) / len(right) >= 0.6
    greedy = lines(made / "run" / "predictions.json")
    assert sum(x["summary"] == y["summary"] for x, y in zip(found, greedy, strict=True)) >= 90


def test_the_python_of_the_page_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for code in page.blocks("summarization.md#the-program"):
        exec(compile(code, "summarization.md#the-program", "exec"), {"__name__": "page"})
    summary, left_out = capsys.readouterr().out.splitlines()
    assert summary and int(left_out) == 160 + 2 - 96
