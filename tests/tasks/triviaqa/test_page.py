"""The commands of docs/triviaqa.md that need no download, as they stand there."""

import json

import pytest

from etcmodel.tasks.triviaqa import examples, metrics, predict
from tests import page

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands put their files, and what they printed in `log`."""
    folder = tmp_path_factory.mktemp("triviaqa")
    log = page.run_commands("triviaqa.md", folder, having="dataset=triviaqa")
    made = folder / "try" / "triviaqa"
    (made / "log").write_text(log, encoding="utf-8")
    return made


def lines(path):
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def test_the_answers_are_learned(folder):
    (line,) = (x for x in (folder / "log").read_text().splitlines() if x.startswith("{"))
    metrics = json.loads(line)
    assert metrics["em"] >= 0.9 and metrics["answered"] == 1.0


def test_the_exported_model_answers_as_the_run_did(folder):
    gold = list(examples.read_examples(str(folder / "triviaqa_dev.json")))
    found = json.loads((folder / "answers.json").read_text())
    assert found == json.loads((folder / "model" / "predictions.json").read_text())
    assert found.keys() == {example.example_id for example in gold}
    assert metrics.metrics(gold, found)["em"] >= 0.9
    details = lines(folder / "answers_details.jsonl")
    assert {told["id"]: told["answer"] for told in details} == found
    pages = {example.example_id: [x.name for x in example.pages] for example in gold}
    assert all(told["document"] in pages[told["id"]] for told in details)
    scores = [[told["score"], *(x["score"] for x in told["others"])] for told in details]
    assert all(row == sorted(row, reverse=True) for row in scores)


def test_texts_are_read_without_files(folder):
    predictor = predict.TriviaQaPredictor(str(folder / "model" / "export"))
    texts = ["Nobody came from Tarn Mead.", "Ada Kelso came from Ilmaria as a child. It rained."]
    told = predictor.predict_one("Which country was Ada Kelso from?", texts)
    assert (told["answer"], told["document"]) == ("Ilmaria", "SearchResults[1]")
    place, export = folder / "page", folder / "model" / "export"
    page.run_python("triviaqa.md", "runs/triviaqa/export", place, export)
    with pytest.raises(ValueError, match="example 'one': .*no document that can be used"):
        predictor.predict_one("Which country?", [])
    with pytest.raises(ValueError, match="--evidence_dir: no such folder"):
        predict.TriviaQaPredictor(str(folder / "model" / "export"), evidence_dir="nowhere")
