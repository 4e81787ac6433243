"""The generated questions: the data set's format, with no short cut to the answer."""

import collections

from etcmodel.tasks.wikihop import examples
from etcmodel.tools.demos import wikihop as demo_wikihop


def make(split="train", num_examples=300, seed=0):
    return demo_wikihop.make_examples(split=split, num_examples=num_examples, seed=seed)


def test_examples_are_well_formed_and_their_answers_told():
    for raw in make():
        example = examples.parse_example(raw)
        text = " ".join(example.documents).lower()
        assert example.candidates[example.answer_index()] == example.answer
        assert list(example.candidates) == sorted(set(example.candidates))
        assert all(text.count(candidate) == 1 for candidate in example.candidates)
        assert example.query.split(" ", 1)[1] in text


def test_the_splits_share_no_subject():
    train, dev = (
        {raw["query"].split(" ", 1)[1] for raw in make(split)} for split in ("train", "dev")
    )
    assert not train & dev


def test_neither_place_nor_word_gives_the_answer_away():
    raws = make(num_examples=2000)
    places = collections.Counter(raw["candidates"].index(raw["answer"]) for raw in raws)
    answers = collections.Counter((raw["query"].split()[0], raw["answer"]) for raw in raws)
    assert max(places.values()) < 0.25 * len(raws)
    assert max(answers.values()) < 0.06 * len(raws)  # One of 27.
