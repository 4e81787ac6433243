"""Distractors for HotpotQA's questions that are like them."""

import collections
import json
import math
import re
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.preprocessing import hotpotqa_files
from etcmodel.tasks.squad import examples as squad_examples
from etcmodel.tasks.squad import predict
from etcmodel.tools import adversarial_distractors

TEXTS = st.lists(st.text("ab c", min_size=1, max_size=12), min_size=1, max_size=6)


def slow_similarities(texts, query):
    """The cosine of the query's and each text's vector, word by word."""
    counts = [collections.Counter(re.findall(r"\w+", text)) for text in texts]
    words = {word for found in counts for word in found}
    shares = {word: sum(word in found for found in counts) / len(texts) for word in words}

    def vector(text):
        found = collections.Counter(re.findall(r"\w+", text))
        return {
            word: (1 + math.log(count)) * -math.log(shares[word])
            for word, count in found.items()
            if word in words
        }

    asked = vector(query)
    for text in texts:
        of_text = vector(text)
        product = sum(asked.get(word, 0) * weight for word, weight in of_text.items())
        norm = math.sqrt(sum(weight**2 for weight in of_text.values()))
        yield product / norm if norm else 0.0


@settings(max_examples=50)
@given(TEXTS, st.text("ab c", max_size=12))
def test_the_nearest_texts_are_those_of_a_slow_search(texts, query):
    found = adversarial_distractors.TfIdf(texts).nearest(query)
    similarities = np.array(list(slow_similarities(texts, query)))
    assert sorted(found) == list(range(len(texts)))
    np.testing.assert_allclose(similarities[found], np.sort(similarities)[::-1], atol=1e-9)


def question(name, text, gold, others):
    context = [[title, [f"{title} {rest}.", " It is old."]] for title, rest in (*gold, *others)]
    facts = [[title, 0] for title, _ in gold]
    labels = {"answer": gold[0][1], "supporting_facts": facts, "type": "bridge", "level": "easy"}
    return {"_id": name, "question": text, "context": context, **labels}


QUESTIONS = [
    question(
        "q1",
        "Where is the mill of Tarn?",
        [("Tarn", "has a mill in Avaria"), ("Avaria", "is a land")],
        [("Osset", "is green")],
    ),
    question(
        "q2",
        "Who built the bridge?",
        [("Pell", "built the bridge")],
        [("Quint", "has a mill"), ("Rill", "is a lake"), ("Tarn", "is of the mill too")],
    ),
]


def made(tmp_path, **options):
    raw, output = tmp_path / "hotpot.json", tmp_path / "adversarial.json"
    raw.write_text(json.dumps(QUESTIONS), encoding="utf-8")
    given = {"input_file": str(raw), "output_file": str(output), "num_distractors": 2, **options}
    adversarial_distractors.main(adversarial_distractors.AdversarialOptions(**given))
    return json.loads(output.read_text(encoding="utf-8"))


def test_a_question_keeps_its_facts_and_gets_the_most_similar_other_paragraphs(tmp_path, capsys):
    first, second = made(tmp_path)
    assert capsys.readouterr().out.startswith("2 questions with 2 of 7 paragraphs each: ")
    for found, raw in zip((first, second), QUESTIONS, strict=True):
        kept = {key: value for key, value in raw.items() if key != "context"}
        assert {key: found[key] for key in kept} == kept
        gold = {title for title, _ in raw["supporting_facts"]}
        assert [x for x in raw["context"] if x[0] in gold] == sorted(
            (x for x in found["context"] if x[0] in gold), key=raw["context"].index
        )
    # Quint has "mill", Pell "the"; Tarn has it, too, and of those without a word the first counts.
    assert sorted(title for title, _ in first["context"]) == ["Avaria", "Pell", "Quint", "Tarn"]
    assert sorted(title for title, _ in second["context"]) == ["Avaria", "Pell", "Tarn"]
    assert made(tmp_path) == [first, second]
    read = squad_examples.parse_example(first, needs_labels=True)
    assert read.kind == "bridge" and read.answers


def test_a_reader_chooses_among_the_similar_ones(tmp_path):
    """It believes in lakes, which are not similar to the questions."""

    class Reader:
        def __init__(self, export_dir):
            assert export_dir == "export"

        def predict(self, rows):
            return {x["id"]: {"null_odds": -1.0 if "lake" in x["context"] else 0.0} for x in rows}

    with mock.patch.object(predict, "SquadPredictor", Reader):
        first, _ = made(tmp_path, reader_export_dir="export", num_distractors=1)
    assert {title for title, _ in first["context"]} == {"Tarn", "Avaria", "Rill"}
    with (
        mock.patch.object(Reader, "predict", lambda _, rows: {x["id"]: {} for x in rows}),
        mock.patch.object(predict, "SquadPredictor", Reader),
        pytest.raises(ValueError, match="'export' knows no texts without an answer"),
    ):
        made(tmp_path, reader_export_dir="export")


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ({}, {"num_distractors": 9}, "example 'q1': there are only 4 paragraphs of other titles"),
        ({"supporting_facts": []}, {}, "example 'q1': field `context` must have a paragraph with"),
        ({"supporting_facts": None}, {}, "example 'q1': field `context` must have a paragraph"),
    ],
)
def test_what_cannot_be_made_is_told_with_the_example(fields, options, message, tmp_path):
    raw = tmp_path / "hotpot.json"
    with (
        mock.patch.dict(QUESTIONS[0], fields),
        pytest.raises(ValueError, match=message),
    ):
        made(tmp_path, **options)
    assert hotpotqa_files.parse_example(json.loads(raw.read_text())[1]).example_id == "q2"
    assert not (tmp_path / "adversarial.json").exists()
