"""SQuAD's own layout and rows give the same questions; what is wrong is told in a line."""

import json

from etcmodel.tasks.squad import examples
from tests.tasks.squad import small

RAW = small.raw_question("The red king, a king.", "red king", "king")


def nested(*raws):
    """SQuAD's file: a paragraph for each question."""
    own = ("id", "question", "answers", "is_impossible", "plausible_answers")
    paragraphs = [
        {"context": raw["context"], "qas": [{name: raw[name] for name in own if name in raw}]}
        for raw in raws
    ]
    return {"version": "v2.0", "data": [{"title": "T", "paragraphs": paragraphs}]}


def test_all_layouts_have_the_same_questions(tmp_path):
    none = {**RAW, "id": "none", "answers": [], "is_impossible": True, "plausible_answers": [{}]}
    columns = {key: [x[key] for x in RAW["answers"]] for key in ("text", "answer_start")}
    texts = {
        "one_line.json": json.dumps(nested(RAW, none)),
        "lines.json": json.dumps(nested(RAW, none), indent=1),
        "articles.json": json.dumps(nested(RAW, none)["data"]),
        "rows.jsonl": f"{json.dumps({**RAW, 'answers': columns})}\n{json.dumps(none)}\n",
    }
    first = examples.parse_example(RAW, needs_labels=True)
    assert first.answers == (("red king", 4, 12), ("king", 8, 12))
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        found = [x["question"] for x in examples.read_questions(str(tmp_path / name))]
        parsed = [examples.parse_example(raw, needs_labels=True) for raw in found]
        assert parsed == [first, examples.SquadExample("none", "who was it", RAW["context"], ())]
        assert examples.has_unanswerable(str(tmp_path / name))
    (tmp_path / "v1.json").write_text(json.dumps(nested(RAW)), encoding="utf-8")
    assert not examples.has_unanswerable(str(tmp_path / "v1.json"))


def test_damage_hides_no_other_question(tmp_path, caplog):
    made = nested(RAW, {**RAW, "id": "2"}, {**RAW, "id": "3"})
    paragraphs = made["data"][0]["paragraphs"]
    paragraphs[0]["qas"] = None
    paragraphs[1]["qas"].append("who?")
    made["data"].append({"paragraphs": "none"})
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    assert [x.example_id for x in examples.read_examples(str(path))] == ["2", "3"]
    for place in ("0, paragraphs[0]: ", "0, paragraphs[1].qas[1]: ", "1, paragraphs: "):
        assert f"dev.json: element {place}" in caplog.text


def test_white_space_around_an_answer_is_left_out():
    raw = {**RAW, "answers": [{"text": " red ", "answer_start": 3}]}
    assert examples.parse_example(raw, needs_labels=True).answers == ((" red ", 4, 7),)
