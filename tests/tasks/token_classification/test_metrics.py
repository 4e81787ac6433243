"""Entities and scores as conlleval counts them; windows joined by context."""

import itertools
import json

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from etcmodel.reports import results
from etcmodel.tasks.token_classification import metrics, report

LABELS = ("O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("LOC", "PER")))
TAGS = st.lists(st.sampled_from(LABELS), min_size=1, max_size=8)


def ends(before, tag, kind_before, kind):
    """conlleval's endOfChunk: whether a chunk ended between two words."""
    rules = [
        (before, tag) in {("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S"), ("I", "O")},
        before in ("E", "S"),
        before != "O" and kind_before != kind,
    ]
    return any(rules)


def starts(before, tag, kind_before, kind):
    """conlleval's startOfChunk: whether a chunk begins at the second word."""
    rules = [
        tag in ("B", "S"),
        (before, tag) in {("E", "E"), ("E", "I"), ("S", "E"), ("S", "I"), ("O", "E"), ("O", "I")},
        tag != "O" and kind_before != kind,
    ]
    return any(rules)


def twin(tags):
    """The chunks word by word, in the two passes of the script."""
    split = [("O", ""), *((tag[0], tag[2:]) for tag in tags), ("O", "")]
    found, begin = [], None
    for place, ((before, kind_before), (tag, kind)) in enumerate(itertools.pairwise(split)):
        if begin is not None and ends(before, tag, kind_before, kind):
            found.append((kind_before, begin, place))
            begin = None
        if starts(before, tag, kind_before, kind):
            begin = place
    return found


@hypothesis.given(TAGS)
@hypothesis.settings(max_examples=500)
def test_entities_are_those_of_conlleval(tags):
    assert metrics.entities(tags) == twin(tags)


def test_bilou_is_bioes():
    bioes = ["B-A", "I-A", "E-A", "S-B", "O", "S-A", "I-A"]
    bilou = [tag.translate({ord("E"): "L", ord("S"): "U"}) for tag in bioes]
    wanted = [("A", 0, 3), ("B", 3, 4), ("A", 5, 6), ("A", 6, 7)]
    assert metrics.entities(bioes) == metrics.entities(bilou) == wanted


def told(gold, tags):
    return {"words": [["w"] * len(x) for x in gold], "gold": gold, "tags": tags}


@hypothesis.given(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=4))
def test_scores_are_those_of_the_entities_in_each_sentence(pairs):
    pairs = [(gold[: len(tags)], tags[: len(gold)]) for gold, tags in pairs]
    found = metrics.metrics([told(*map(list, zip(*pairs, strict=True)))], LABELS)
    words = [x for both in pairs for x in zip(*both, strict=True)]
    right = sum(len({*twin(gold)} & {*twin(tags)}) for gold, tags in pairs)
    of_gold, of_tags = (sum(len(twin(pair[part])) for pair in pairs) for part in (0, 1))
    assert found["accuracy"] == np.mean([a == b for a, b in words])
    assert found["precision"] == (right / of_tags if of_tags else 0)
    assert found["recall"] == (right / of_gold if of_gold else 0)
    assert found["f1"] == pytest.approx(2 * right / (of_gold + of_tags) if right else 0)


def test_each_kind_has_its_f1_and_words_left_out_are_outside():
    gold, tags = [["B-LOC", "O", "B-PER", "I-PER"]], [["B-LOC", "B-PER", "B-PER", None]]
    found = metrics.metrics([told(gold, tags)], LABELS)
    assert found["f1/LOC"] == 1 and found["f1/PER"] == 0 and found["words_left_out"] == 1
    assert found["accuracy"] == 0.5


def test_tags_without_entities_have_accuracy_and_macro_f1():
    labels = ("NOUN", "VERB", "X")
    found = metrics.metrics([told([["NOUN", "VERB", "VERB"]], [["NOUN", "VERB", None]])], labels)
    assert found == {
        "accuracy": pytest.approx(2 / 3),
        "macro_f1": pytest.approx((1 + 2 / 3) / 2),
        "words_left_out": 1,
    }


def test_a_tag_that_the_model_does_not_know_counts_in_macro_f1():
    found = metrics.metrics([told([["NOUN", "NUM"]], [["NOUN", "X"]])], ("NOUN", "X"))
    assert (found["accuracy"], found["macro_f1"]) == (0.5, pytest.approx(1 / 3))


def window(word_ids, tags, words=None, gold=None):
    """The output of a record whose logits say these tags."""
    length = len(word_ids)
    outputs = {
        "example_id": b"e",
        "words": json.dumps(words).encode() if words else b"",
        "word_ids": np.array(word_ids),
        "example_ids": np.ones(length, int),
        "logits": 9.0 * np.eye(len(LABELS))[[LABELS.index(tag) for tag in tags]],
    }
    return {**outputs, "tags": json.dumps(gold).encode()} if gold else outputs


def test_a_word_has_the_tag_of_the_window_with_most_context():
    words = ["a", "b", "c", "d", "e"]
    first = window([-1, 0, 1, 2, -1], ["O", "B-PER", "I-PER", "O", "O"], words)
    second = window([-1, 2, 3, -1], ["O", "B-LOC", "I-LOC", "O"])
    found = metrics.combine(map(metrics.line, [first, second]), LABELS)
    # Records of an example may be in several files.
    other = {**window([0], ["O"], ["x"]), "example_id": b"o"}
    dealt = metrics.combine(map(metrics.line, [second, other, first]), LABELS)
    assert dealt["e"] == found["e"] and dealt["o"]["tags"] == ["O"]
    # Word 2 is the last one in the first window, and the first in the second: the first one counts.
    assert found["e"]["tags"] == ["B-PER", "I-PER", "O", "I-LOC", None]
    assert "gold" not in found["e"]
    assert found["e"]["entities"] == [
        {"kind": "PER", "text": "a b", "sentence": 0, "start": 0, "end": 2},
        {"kind": "LOC", "text": "d", "sentence": 0, "start": 3, "end": 4},
    ]
    third = window([-1, 0, 1, 2, 3, -1], ["O", "O", "O", "B-LOC", "O", "O"])
    found = metrics.combine(map(metrics.line, [first, third]), LABELS)
    assert found["e"]["tags"] == ["B-PER", "I-PER", "B-LOC", "O", None]


def test_sentences_keep_their_form():
    words, gold = [["a"], ["b", "c"]], [["O"], ["B-PER", "O"]]
    output = window([-1, 0, 1, 2], ["O", "O", "B-PER", "O"], words, gold)
    found = metrics.combine([metrics.line(output)], LABELS)["e"]
    assert found["tags"] == gold == found["gold"]
    assert found["entities"] == [{"kind": "PER", "text": "b", "sentence": 1, "start": 0, "end": 1}]
    assert metrics.metrics([found], LABELS)["f1"] == 1


def test_records_that_are_no_text_are_named():
    first, rest = window([0, 1], ["O", "O"], ["a", "b"]), window([1], ["O"])
    with pytest.raises(ValueError, match="id 'e' are of two texts"):
        metrics.combine(map(metrics.line, [first, first]), LABELS)
    with pytest.raises(ValueError, match="id 'e' lack the text's first one"):
        metrics.combine(map(metrics.line, [rest]), LABELS)


@pytest.mark.parametrize("words", [["a", "b"], [["a"], ["b"]]])
@pytest.mark.parametrize(
    "told", [{}, {"tags": None}, {"tags": [None]}, {"tags": ["O", 3]}, {"tags": "OO"}]
)
def test_a_report_names_a_prediction_of_another_form(tmp_path, words, told):
    tags = ["O", "O"] if words == ["a", "b"] else [["O"], ["O"]]
    gold, predictions = tmp_path / "gold.jsonl", tmp_path / "told.json"
    gold.write_text(json.dumps({"id": "e", "words": words, "tags": tags}), encoding="utf-8")
    predictions.write_text(json.dumps({"e": told}), encoding="utf-8")
    given = results.Given(str(predictions), str(gold), {"labels": ["O", "B-A"]})
    with pytest.raises(ValueError, match="prediction of 'e' must have `tags`, one for each word"):
        report.read_results(given)
