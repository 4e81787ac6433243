"""The commands of docs/gmat.md on numerical reasoning, as they stand there."""

import collections
import json

import pytest

from etcmodel.tasks.numerical_reasoning import examples, metrics, predict
from tests import page
from tests.tasks import programs, stopping

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands were run, and what they printed in `log`."""
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "log").write_text(page.run_commands("gmat.md#numerical-reasoning", folder))
    return folder


@pytest.fixture(scope="module")
def predictor(folder):
    path = folder / "try" / "numbers" / "run" / "export"
    return predict.NumericalPredictor(str(path))


def gold(folder):
    path = folder / "try" / "numbers" / "numerical_reasoning_dev.jsonl"
    return list(examples.read_examples(str(path)))


def test_it_answers_more_than_by_the_commonest_number(folder):
    lines = [line for line in (folder / "log").read_text().splitlines() if line.startswith("{")]
    found = json.loads(lines[-1])
    answers = collections.Counter(example.answer for example in gold(folder))
    ((_, commonest),) = answers.most_common(1)
    assert found["exact_match"] >= commonest / answers.total() + 0.1
    assert {x for x in found if x.startswith("exact_match_")} == {
        f"exact_match_{example.kind}" for example in gold(folder)
    }


def test_the_exported_model_answers_as_the_run_did(folder):
    made = folder / "try" / "numbers"
    found = json.loads((made / "answers.json").read_text())
    kept = json.loads((made / "run" / "predictions.json").read_text())
    assert found == kept and len(found) == 200
    lines = [line for line in (folder / "log").read_text().splitlines() if line.startswith("{")]
    assert metrics.metrics(gold(folder), found) == json.loads(lines[-1])


def test_raw_questions_are_answered_and_bad_ones_named(folder, predictor):
    kept = json.loads((folder / "try" / "numbers" / "answers.json").read_text())
    raws = [
        {"id": x.example_id, "question": x.question, "passage": x.passage} for x in gold(folder)[:5]
    ]
    assert predictor.predict(raws, batch_size=2) == {raw["id"]: kept[raw["id"]] for raw in raws}
    with pytest.raises(ValueError, match="example 'a': field `passage` is missing"):
        predictor.predict([{"id": "a", "question": "?"}])


def test_the_python_of_the_page_answers_one_question(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    exec(*page.blocks("gmat.md#numerical-reasoning"), names)  # The library's own page.
    assert isinstance(names["answer"], str)


def test_a_run_that_is_done_is_not_trained_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run = folder / "try" / "numbers" / "run"
    before = {path.name: path.read_bytes() for path in run.glob("ckpt-*")}
    programs.fine_tune(
        "numerical_reasoning",
        run_mode="train",
        vocab_file="try/numbers/vocab.txt",
        model_config_file="try/numbers/gmat_config.json",
        train_data="try/numbers/train-*.tfrecord",
        chunk_size=16,
        num_memory_tokens=8,
        untied_memory=True,
        long_seq_length=32,
        max_answer_length=6,
        learning_rate=1e-3,
        train_batch_size=32,
        num_train_epochs=2.4,
        output_dir="try/numbers/run",
    )
    assert before and before == {path.name: path.read_bytes() for path in run.glob("ckpt-*")}


def test_a_stopped_prediction_goes_on(folder, predictor, tmp_path):
    made = folder / "try" / "numbers"
    raws = made / "numerical_reasoning_dev.jsonl"
    stopping.assert_a_stopped_prediction_goes_on(predictor, raws, tmp_path)
    answers = json.loads((tmp_path / "stopped.json").read_text())
    assert answers == json.loads((made / "answers.json").read_text())
