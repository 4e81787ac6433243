"""Varied copies of real examples: other words, the same structure, labels that still fit."""

import itertools
import json
import pathlib

import pytest

from etcmodel.preprocessing import raw_files
from etcmodel.tools.benchmarks import tokenizing, varied_copies
from tests.tasks.nq import raw_examples as nq
from tests.tasks.openkp import pages

SMALL = pathlib.Path(__file__).parents[1] / "reference" / "small"


def originals(dataset):
    """Raw examples with labels, as `varied_copies` takes them."""
    if dataset == "nq":
        return [nq.raw_example()]
    if dataset == "openkp":
        return [pages.page("a red rose here", "and more of it", key_phrases=[["red", "rose"], []])]
    name = {"hotpotqa": "labelled.json", "wikihop": "examples.json"}[dataset]
    return list(raw_files.read_json_values(str(SMALL / dataset / "raw" / name)))


def texts(dataset, raw):
    """The texts of an example that are varied."""
    if dataset == "hotpotqa":
        return [raw["question"], *(x for _, sentences in raw["context"] for x in sentences)]
    if dataset == "wikihop":
        return raw["supports"]
    return [raw["document_text" if dataset == "nq" else "text"]]


@pytest.mark.parametrize("dataset", sorted(varied_copies.MAKERS))
def test_copies_have_as_many_words_and_differ(dataset):
    raws = originals(dataset)
    made = list(itertools.islice(varied_copies.copies(dataset, raws, seed=3), 2 * len(raws)))
    for number, copy in enumerate(made):
        before, after = (texts(dataset, x) for x in (raws[number % len(raws)], copy))
        lengths = [[len(text.split(" ")) for text in side] for side in (before, after)]
        assert lengths[0] == lengths[1] and before != after
    first, second = made[: len(raws)], made[len(raws) :]
    assert first != second
    assert made == list(itertools.islice(varied_copies.copies(dataset, raws, seed=3), len(made)))
    assert first != list(itertools.islice(varied_copies.copies(dataset, raws, seed=4), len(raws)))


@pytest.mark.parametrize("dataset", sorted(varied_copies.MAKERS))
def test_files_of_copies_can_be_read_by_the_data_set(dataset, tmp_path):
    source, path = tmp_path / "source.json", tmp_path / "copies.json"
    source.write_text("\n".join(map(json.dumps, originals(dataset))), encoding="utf-8")
    count = varied_copies.write(dataset, str(source), str(path), 20_000, seed=1)
    size = path.stat().st_size
    assert 20_000 <= size < 20_000 + 2 * max(map(len, path.read_text().splitlines()))
    examples = list(tokenizing.read_examples(dataset, str(path)))
    assert len(examples) == count > 3
    assert len({getattr(x, "url", None) or x.example_id for x in examples}) == count


def test_tags_and_places_of_a_page_stay():
    (copy,) = itertools.islice(varied_copies.copies("nq", originals("nq")), 1)
    pairs = list(zip(nq.TEXT.split(), copy["document_text"].split(), strict=True))
    assert all(old == new for old, new in pairs if old.startswith("<"))
    assert not any(new.startswith("<") for old, new in pairs if not old.startswith("<"))


def test_a_sentence_with_the_answer_stays():
    raw = {
        "_id": "a",
        "question": "who made it ?",
        "answer": "Ann Lee",
        "supporting_facts": [["T", 0]],
        "context": [["T", ["Ann Lee made it in the mill .", "one two three four five six seven"]]],
    }
    for copy in itertools.islice(varied_copies.copies("hotpotqa", [raw]), 5):
        assert copy["context"][0][1][0] == "Ann Lee made it in the mill ."
        assert copy["supporting_facts"] == [["T", 0]]


def test_elements_and_phrases_are_those_of_the_new_text():
    for copy in itertools.islice(varied_copies.copies("openkp", originals("openkp")), 5):
        words = copy["text"].split(" ")
        for element in json.loads(copy["VDOM"]):
            assert element["text"].split(" ") == words[element["start_idx"] : element["end_idx"]]
        ((first, second),) = copy["KeyPhrases"]
        assert (first, second) in itertools.pairwise(words)


def test_a_small_part_of_the_words_is_new():
    """Of two halves each, so that a memory of words meets new ones."""
    words = [f"{letter * 6}{number}" for letter in "abcdef" for number in range(20)]
    raw = {**nq.raw_example(), "document_text": " ".join(20 * words)}
    (copy,) = itertools.islice(varied_copies.copies("nq", [raw]), 1)
    after = copy["document_text"].split(" ")
    new = sum(word not in words for word in after) / len(after)
    changed = sum(x != y for x, y in zip(20 * words, after, strict=True)) / len(after)
    assert 0.02 < new < 0.04 and 0.45 < changed < 0.55


def test_a_phrase_longer_than_its_page_stays_a_phrase():
    raw = pages.page("red rose", key_phrases=[["a", "red", "rose"]])
    (copy,) = itertools.islice(varied_copies.copies("openkp", [raw]), 1)
    assert copy["KeyPhrases"] == [copy["text"].split(" ")]


_HUGGING_FACE = {"id": "a", "question": "b", "context": {"title": ["T"], "sentences": [["c"]]}}


@pytest.mark.parametrize(
    ("dataset", "raws", "problem"),
    [
        ("hotpotqa", [_HUGGING_FACE], "example 0: field `context` must be a list of pairs"),
        ("nq", [nq.original_layout(nq.raw_example())], "0: field `document_text` is missing"),
        ("openkp", [pages.page("a", KeyPhrases=None)], "field `KeyPhrases` is missing"),
        ("wikihop", [["a"]], "an example must be a JSON object"),
        ("wikihop", [], "there is no example to copy"),
    ],
)
def test_a_file_that_cannot_be_copied_is_told(dataset, raws, problem, tmp_path):
    source, path = tmp_path / "source.json", tmp_path / "copies.json"
    source.write_text(json.dumps(raws), encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{source}: .*{problem}"):
        varied_copies.write(dataset, str(source), str(path), 100)
    assert not path.exists()
