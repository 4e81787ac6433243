"""Questions by hash, answers that need no model, and the table; no model is trained here."""

import hashlib
import json
import pathlib

import pytest

from benchmarks import hotpotqa_questions
from benchmarks import real_questions as benchmark
from etcmodel.tasks.hotpotqa import examples, metrics

CONTEXT = [
    ["Emma (novel)", ["Emma is a novel.", "It has a heroine."]],
    ["Persuasion", ["A captain comes back.", "He wrote a letter."]],
    ["Bath", ["A town.", "It has springs."]],
]


def question(number, text="Did the author of Emma live in the town?", facts=(("Bath", 0),)):
    return {
        "_id": f"q{number}",
        "question": text,
        "answer": "yes",
        "supporting_facts": [list(fact) for fact in facts],
        "context": CONTEXT,
    }


def test_questions_are_split_by_the_hash_of_their_ids():
    questions = [question(number) for number in range(9)]
    train, test = hotpotqa_questions.split(questions, 4)
    digests = [hashlib.sha256(x["_id"].encode()).hexdigest() for x in [*test, *train]]
    assert len(test) == 4 and len(train) == 5 and digests == sorted(digests)
    assert hotpotqa_questions.split(questions[::-1], 4) == (train, test)
    with pytest.raises(ValueError, match="below the number of questions, 9. Received: 9"):
        hotpotqa_questions.split(questions, 9)


def test_distractors_are_drawn_for_each_copy():
    context = [[f"Title {number}", ["A sentence."]] for number in range(8)]
    facts = [["Title 5", 0], ["Title 2", 0]]
    raw = {"_id": "q", "question": "?", "answer": "yes", "supporting_facts": facts}
    raw["context"] = context
    assert hotpotqa_questions.with_fewer_distractors([raw], 0, 1) == [raw]
    made = hotpotqa_questions.with_fewer_distractors([raw], 2, 5)
    assert [x["_id"] for x in made] == ["q", "q-1", "q-2", "q-3", "q-4"]
    assert made == hotpotqa_questions.with_fewer_distractors([raw], 2, 5)
    kept = [[title for title, _ in x["context"]] for x in made]
    for titles in kept:
        assert len(titles) == 4 and titles == sorted(titles)
        assert {"Title 5", "Title 2"} < set(titles)
    assert len({tuple(titles) for titles in kept}) > 1
    assert len(hotpotqa_questions.with_fewer_distractors([raw], 20, 1)[0]["context"]) == 8


def test_what_needs_no_model(tmp_path):
    raw = [question(0), question(1, "Who wrote a letter, the captain?", [("Persuasion", 1)])]
    (tmp_path / "test.json").write_text(json.dumps(raw))
    test = list(examples.read_examples(str(tmp_path / "test.json")))
    *of_facts, of_answers = [predict(test) for predict in hotpotqa_questions.BASELINES.values()]
    every, named, likest = (x["sp"] for x in of_facts)
    assert of_answers["answer"] == {"q0": "Bath", "q1": "Persuasion"}
    assert of_answers["sp"] == {"q0": [], "q1": []} and not any(of_facts[0]["answer"].values())
    assert every["q0"] == every["q1"] == [[title, 0] for title, _ in CONTEXT]
    assert named == {"q0": [["Emma (novel)", 0]], "q1": every["q1"]}  # "q1" names none.
    assert [title for title, _ in likest["q1"]][0] == "Persuasion"
    first = metrics.metrics(test, hotpotqa_questions.BASELINES["every first sentence"](test))
    # Of three first sentences one is the fact of "q0"; that of "q1" is a second sentence.
    assert first["sp_f1"] == pytest.approx((2 * (1 / 3) / (1 / 3 + 1)) / 2) and first["f1"] == 0.0


def test_each_paragraph_is_pre_trained_on_once():
    other = {**question(1), "context": [CONTEXT[2], ["Lyme", [" A cobb.", " It is old. "]]]}
    assert hotpotqa_questions.documents([question(0), other]) == [
        {"text": "Emma (novel). Emma is a novel. It has a heroine."},
        {"text": "Persuasion. A captain comes back. He wrote a letter."},
        {"text": "Bath. A town. It has springs."},
        {"text": "Lyme. A cobb. It is old."},
    ]


def test_runs_differ_in_first_weights_and_paragraphs():
    found = benchmark.kinds(pathlib.Path("runs"))
    assert set(found) == set(benchmark.RealQuestionsOptions().kinds)
    for name, flags in found.items():
        assert str(flags["init_checkpoint"]) == f"runs/{name.split('_')[0]}"
        assert flags["flat_sequence"] == name.endswith("_flat")


def test_the_table_has_means_and_spreads():
    scores = [
        {"f1": x, "sp_f1": 2 * x, "joint_f1": 0.0, "train_seconds": round(400 * x)}
        for x in (0.25, 0.5)
    ]
    made = benchmark.table(
        {"nothing": dict.fromkeys(("f1", "sp_f1", "joint_f1"), 0.0)},
        {("lifted", 245): scores, ("random", 245): scores[:1]},
    )
    assert made.splitlines()[2:] == [
        "| nothing |  |  | 0.000 | 0.000 | 0.000 |  |",
        "| lifted | 245 | 2 | 0.375 (0.250 to 0.500) | 0.750 (0.500 to 1.000) "
        "| 0.000 (0.000 to 0.000) | 200 |",
        "| random | 245 | 1 | 0.250 | 0.500 | 0.000 | 100 |",
    ]
