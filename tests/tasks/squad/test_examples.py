"""SQuAD's own layout and rows give the same questions; what is wrong is told in a line."""

import json

import pytest

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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": " "}, "field `context` must not be empty"),
        ({"question": 3}, "field `question` must be a string"),
        ({"context": "\ud800 king"}, "half of a surrogate pair"),
        ({"answers": None}, "field `answers` is missing, and training needs it"),
        ({"answers": "king"}, "field `answers` must be"),
        ({"answers": [{"answer_start": 4}]}, "field `text` is missing"),
        ({"answers": [{"text": " ", "answer_start": 3}]}, "field `text` must not be empty"),
        ({"answers": [{"text": "king"}]}, "`answer_start` must be where .* 'king'; .*''. R.*None"),
        (
            {"answers": [{"text": "king", "answer_start": 4}]},
            "`answer_start` must be where the context has the answer 'king'; there it has 'red '",
        ),
        ({"answers": [{"text": "The", "answer_start": -21}]}, "`answer_start` must be"),
        ({"is_impossible": True}, "`answers` must be empty where `is_impossible` is true"),
        ({"is_impossible": "no"}, "`is_impossible` must be true or false"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(ValueError, match=f"^example 'q': .*{message}"):
        examples.parse_example({**RAW, **change}, needs_labels=True)


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
