"""The demo's questions: longer than its window, and told by all mentions of a place together."""

import collections
import functools
import re

import pytest

from etcmodel.tasks.wikihop import examples, report
from etcmodel.tools import run_demo
from etcmodel.tools.demos import baselines, wikihop_long


@functools.cache
def make(split="train", num_examples=300, seed=0):
    return wikihop_long.make_examples(split=split, num_examples=num_examples, seed=seed)


def sentences_of(raw):
    return [f"{text}." for document in raw["supports"] for text in re.findall(r"[^.]+", document)]


def sentences_with(raw, place):
    """The sentences that mention a place, with {v} in its stead, and {s} in the person's."""
    _, person = asked(raw)
    return [
        text.strip().replace(place, "{v}").replace(person, "{s}")
        for text in sentences_of(raw)
        if place in text
    ]


def asked(raw):
    """What is asked, with {s} in the stead of the person, and the person."""
    (person,) = re.findall(r"[A-Z]\w+ [A-Z]\w+", raw["query"].partition(" ")[2])
    return raw["query"].replace(person, "{s}"), person


def test_examples_are_well_formed():
    for raw in make():
        example = examples.parse_example(raw)
        assert example.candidates[example.answer_index()] == example.answer
        assert list(example.candidates) == sorted(set(example.candidates))
        assert 6 <= len(example.candidates) <= 9


def test_the_answer_is_the_one_place_that_is_told_and_not_ruled_out():
    ruling_out = set(wikihop_long.RULING_OUT)
    num_told = 0
    for raw in make():
        telling = set(wikihop_long.RELATIONS[asked(raw)[0]])
        forms = {place: set(sentences_with(raw, place)) for place in raw["candidates"]}
        told = {place for place in forms if forms[place] & telling}
        num_told += len(told)
        assert {place for place in told if not forms[place] & ruling_out} == {raw["answer"]}
    # Who reads only what tells finds the answer among three.
    assert 2.5 * 300 < num_told < 3.5 * 300


def test_questions_are_in_words():
    assert {asked(raw)[0] for raw in make()} == wikihop_long.RELATIONS.keys()
    assert make("dev", 1)[0]["query"] == "Where did Rhea Abelin die?"
    assert all(report.in_words(raw["query"]) == raw["query"] for raw in make())


def test_inputs_are_many_times_longer_than_the_window_and_fit():
    window = 2 * run_demo.ETC_CONFIG["local_radius"] + 1
    for raw in make("train", 1000):
        texts = wikihop_long.texts(raw)
        num_tokens = sum(len(re.findall(r"[^\W_]+|_|[^\w\s]", text)) for text in texts)
        assert 6 * window < num_tokens <= run_demo.LENGTHS["long_seq_length"]


def test_what_is_said_of_a_place_is_within_the_window_of_its_mention():
    for raw in make():
        for text in sentences_of(raw):
            assert len(re.findall(r"\w+|[^\w\s]", text)) <= run_demo.ETC_CONFIG["local_radius"] + 1


def test_the_splits_share_no_name():
    train, dev = (
        {name for raw in make(split) for name in (*raw["candidates"], asked(raw)[1])}
        for split in ("train", "dev")
    )
    assert not train & dev


def test_places_of_a_question_share_words():
    for raw in make():
        words = collections.Counter(word for place in raw["candidates"] for word in place.split())
        assert max(words.values()) >= 2


@pytest.mark.parametrize("baseline", baselines.BASELINES.values())
def test_no_trivial_answer_does_well(baseline):
    dev = make("dev", 500)
    answers = baseline(make("train", 1000), dev)
    num_right = sum(answers[raw["id"]] == raw["answer"] for raw in dev)
    assert num_right < 0.25 * len(dev)  # Guessing gives 0.135 ± 0.015.
