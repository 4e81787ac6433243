"""The commands of docs/gmat.md on majority tagging, as they stand there."""

import json

import numpy as np
import pytest

from etcmodel.tasks.majority_tagging import examples, metrics, predict
from tests import page
from tests.tasks import stopping

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands were run, and what they printed in `log`."""
    folder = tmp_path_factory.mktemp("majority")
    (folder / "log").write_text(page.run_commands("gmat.md#majority-tagging", folder))
    return folder


def test_with_a_memory_it_is_learned_and_without_one_it_is_not(folder):
    lines = [line for line in (folder / "log").read_text().splitlines() if line.startswith("{")]
    with_memory, without = map(json.loads, lines)
    assert with_memory["exact_match"] >= 0.98 and with_memory["tag_accuracy"] >= 0.99
    assert without["exact_match"] <= 0.10 and 0.55 <= without["tag_accuracy"] <= 0.70
    assert with_memory["constant_exact_match"] == without["constant_exact_match"]
    assert 0.45 <= without["constant_exact_match"] <= 0.62


def test_the_exported_model_tags_as_the_run_did(folder):
    made = folder / "try" / "tags"
    gold = list(examples.read_examples(str(made / "majority_tagging_dev.jsonl")))
    found = json.loads((made / "tags.json").read_text())
    assert metrics.metrics(gold, found)["exact_match"] >= 0.98
    kept = json.loads((made / "with_memory" / "predictions.json").read_text())
    assert found == kept


def test_the_python_of_the_page_tags_one_sequence(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    exec(*page.blocks("gmat.md#majority-tagging"), names)  # The library's own page.
    assert len(names["tags"]) == 5 and set(names["tags"]) <= {1, 2}


def test_raw_sequences_are_tagged_whatever_their_length(folder):
    predictor = predict.MajorityPredictor(str(folder / "try" / "tags" / "with_memory" / "export"))
    rng = np.random.default_rng(0)
    raws = [
        {"id": str(length), "tokens": rng.integers(1, 3, length).tolist()} for length in (64, 50)
    ]
    found = predictor.predict(raws)
    assert {name: len(tags) for name, tags in found.items()} == {"64": 64, "50": 50}
    assert found["64"] == examples.majority_tags(raws[0]["tokens"]).tolist()
    with pytest.raises(ValueError, match="has 65 tokens, more than --long_seq_length=64"):
        predictor.predict([{"id": "long", "tokens": [1] * 65}])
    with pytest.raises(ValueError, match="two examples with the id '50'"):
        predictor.predict([raws[1], raws[1]])


def test_a_stopped_prediction_goes_on(folder, tmp_path):
    made = folder / "try" / "tags"
    predictor = predict.MajorityPredictor(str(made / "with_memory" / "export"))
    raws = made / "majority_tagging_dev.jsonl"
    stopping.assert_a_stopped_prediction_goes_on(predictor, raws, tmp_path)
    tags = json.loads((tmp_path / "stopped.json").read_text())
    assert tags == json.loads((made / "tags.json").read_text())
