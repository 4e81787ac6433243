"""HotpotQA's paragraphs, by GMAT with the question as its memory."""

import json

import pytest

from etcmodel.tasks.squad import metrics, predict
from etcmodel.tasks.squad.examples import read_examples
from tests.tasks import program_rows, programs, record_sets

pytestmark = pytest.mark.exhaustive


def test_a_gmat_with_the_question_as_memory_learns_hotpotqas_paragraphs(tmp_path):
    paths = program_rows.demo("squad", 800, 60)(tmp_path)
    for name in ("train", "dev"):
        raws = program_rows.as_paragraphs(paths[name])
        paths[name] = str(record_sets.write_raws(tmp_path / f"{name}.json", raws))
    records = {"long_seq_length": 96, "global_seq_length": 48, "doc_stride": 32}
    records |= {"gold_separated": True, "repeat_question": True, "tag_facts": True}
    record_sets.make("squad", tmp_path, paths, **records, dev={"tag_facts": False})
    with open(paths["vocab"], encoding="utf-8") as file:
        size = len(file.readlines())
    gmat = program_rows.small("gmat", num_hidden_layers=2, num_memory_tokens=8)
    run = tmp_path / "run"
    programs.fine_tune(
        "squad",
        run_mode="train",
        **gmat(size, tmp_path),
        vocab_file=paths["vocab"],
        train_data=tmp_path / "train-*.tfrecord",
        output_dir=run,
        question_as_memory=True,
        **program_rows.ROWS["squad"].training,
    )
    evaluated = {"eval_data": tmp_path / "dev-*.tfrecord", "eval_gold": paths["dev"]}
    printed = program_rows.of_task("squad", run_mode="evaluate", output_dir=run, **evaluated)
    found = json.loads(printed.splitlines()[-1])
    gold = list(read_examples(paths["dev"]))
    texts = [x.answers[0].text for x in gold]
    common = max(texts, key=texts.count)
    trivial = metrics.metrics(gold, {x.example_id: common for x in gold})
    assert found["f1"] == found["bridge_f1"] >= trivial["f1"] + 0.2
    answers = record_sets.read_json(run / "predictions.json")
    programs.fine_tune("squad", run_mode="export", output_dir=run)
    predictor = predict.SquadPredictor(str(run / "export"))
    told = predictor.predict(record_sets.read_json(paths["dev"]))
    assert {key: x["answer"] for key, x in told.items()} == answers
