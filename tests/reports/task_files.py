"""Invented gold files and predictions of all tasks: those of even numbers right, the others not."""

import json
import pathlib

from etcmodel.tools import make_demo_data

COUNT = 6
OPTIONS = {
    "classification": {"labels": ["hold", "pass"]},
    "token_classification": {"labels": ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]},
}
WRONG = {"start_token": 0, "end_token": 1}


def make(task, folder):
    """(gold file, predictions file): paths."""
    gold = make_demo_data.make_demo_data(
        dataset=task, output_dir=str(folder), num_train=2, num_dev=COUNT, seed=0
    )["dev"]
    text = pathlib.Path(gold).read_text(encoding="utf-8")
    if task in make_demo_data.JSON_LINES:
        raw = [json.loads(line) for line in text.splitlines()]
    else:
        raw = json.loads(text)
        raw = raw.get("Data") or raw["data"] if isinstance(raw, dict) else raw
    path = folder / f"{task}_predictions.json"
    path.write_text(PREDICTIONS[task](raw), encoding="utf-8")
    return gold, str(path)


def every_second(raw):
    return [(number % 2 == 0, example) for number, example in enumerate(raw)]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def hotpotqa(raw):
    answer = {x["_id"]: x["answer"] if right else "wrong" for right, x in every_second(raw)}
    facts = {x["_id"]: x["supporting_facts"] if right else [] for right, x in every_second(raw)}
    return json.dumps({"answer": answer, "sp": facts})


def wikihop(raw):
    def other(example):
        return next(x for x in example["candidates"] if x != example["answer"])

    rows = {x["id"]: x["answer"] if right else other(x) for right, x in every_second(raw)}
    return json.dumps(rows)


def nq(raw):
    rows = []
    for right, example in every_second(raw):
        note = example["annotations"][0]
        rows.append(
            {
                "example_id": example["example_id"],
                "long_answer": note["long_answer"] if right else WRONG,
                "long_answer_score": 2.0 if right else 0.0,
                "short_answers": note["short_answers"] if right else [],
                "short_answers_score": 2.0 if right else 0.0,
                "yes_no_answer": note["yes_no_answer"] if right else "NONE",
            }
        )
    return json.dumps({"predictions": rows})


def openkp(raw):
    return lines(
        {"url": x["url"], "KeyPhrases": x["KeyPhrases"] if right else [["no", "such", "phrase"]]}
        for right, x in every_second(raw)
    )


def triviaqa(raw):
    rows = {
        x["QuestionId"]: x["Answer"]["NormalizedAliases"][0] if right else "wrong"
        for right, x in every_second(raw)
    }
    return json.dumps(rows)


def squad(raw):
    rows = {}
    for right, article in every_second(raw):
        (question,) = article["paragraphs"][0]["qas"]
        texts = [answer["text"] for answer in question["answers"]] or [""]
        rows[question["id"]] = texts[0] if right else "wrong"
    return json.dumps(rows)


def summarization(raw):
    return lines(
        {
            "id": x["article_id"],
            "summary": x["abstract_text"][0][4:-5] if right else "Wrong.",
        }
        for right, x in every_second(raw)
    )


def classification(raw):
    rows = []
    for right, example in every_second(raw):
        label = example["label"] if right else {"hold": "pass", "pass": "hold"}[example["label"]]
        shares = {name: 0.75 if name == label else 0.25 for name in ("hold", "pass")}
        rows.append({"id": example["id"], "label": label, "probabilities": shares})
    return lines(rows)


def coreference(raw):
    return json.dumps(
        {
            x["doc_key"]: {"clusters": x["clusters"] if right else []}
            for right, x in every_second(raw)
        }
    )


def majority_tagging(raw):
    return json.dumps({x["id"]: x["tags"] if right else [] for right, x in every_second(raw)})


def numerical_reasoning(raw):
    rows = {x["id"]: str(x["answer"]) if right else "none" for right, x in every_second(raw)}
    return json.dumps(rows)


def token_classification(raw):
    def outside(tags):
        return [["O"] * len(x) for x in tags]

    return json.dumps(
        {
            x["id"]: {"tags": x["tags"] if right else outside(x["tags"])}
            for right, x in every_second(raw)
        }
    )


PREDICTIONS = {
    function.__name__: function
    for function in (
        classification,
        coreference,
        hotpotqa,
        majority_tagging,
        nq,
        numerical_reasoning,
        openkp,
        squad,
        summarization,
        token_classification,
        triviaqa,
        wikihop,
    )
}
