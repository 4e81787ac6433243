"""Tags, raw sequences, features and scores of majority tagging."""

import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel.tasks.majority_tagging import examples, features, metrics
from etcmodel.tools.demos import majority_tagging as demo
from tests import vocabularies

RAW = {"id": "a", "tokens": [2, 1, 4, 2], "tags": [2, 2, 3, 2]}


tokenizer = vocabularies.fixture(demo.vocabulary(pairs=6))


def features_of(raw, tokenizer, **fields):
    config = features.InputConfig(**{"long_seq_length": 6, "pairs": 2, **fields})
    return features.make_features(examples.parse_example(raw), config, tokenizer)


def slow_tag(tokens, token):
    counts = collections.Counter(tokens)
    odd = token if token % 2 else token - 1
    return odd if counts[odd] >= counts[odd + 1] else odd + 1


@given(st.lists(st.integers(1, 9), max_size=30))
def test_tags_are_those_of_counting(tokens):
    wanted = [slow_tag(tokens, token) for token in tokens]
    assert examples.majority_tags(tokens).tolist() == wanted


def test_a_tie_and_a_pair_with_one_member():
    assert examples.majority_tags([2, 1, 4, 8, 7, 8]).tolist() == [1, 1, 4, 8, 8, 8]
    assert examples.constant_tags([1, 2, 7, 8]).tolist() == [1, 1, 7, 7]


def test_features_end_with_padding(tokenizer):
    assert features_of(RAW, tokenizer) == {
        "example_id": ["a"],
        "input_ids": [2, 1, 4, 2, 0, 0],
        "attention_mask": [1, 1, 1, 1, 0, 0],
        "labels": [1, 1, 2, 1, -1, -1],
    }
    untagged = features_of({**RAW, "tags": None}, tokenizer, is_training=False)
    assert "labels" not in untagged and untagged["input_ids"] == [2, 1, 4, 2, 0, 0]


def test_numbers_of_two_digits_are_one_piece(tokenizer):
    found = features_of({"id": "b", "tokens": [11, 12]}, tokenizer, pairs=6, is_training=False)
    assert found["input_ids"][:2] == [11, 12]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tags": None}, "example 'a': field `tags` is missing, and training needs it"),
        ({"tokens": [1, 2, 5, 2]}, "field `tokens` has 5, above twice --pairs=2"),
        ({"tags": [1, 2, 6, 2]}, "field `tags` has 6, above twice --pairs=2"),
        ({"tokens": [1] * 7, "tags": [1] * 7}, "has 7 tokens, more than --long_seq_length=6"),
    ],
)
def test_what_is_wrong_is_named(tokenizer, changes, message):
    with pytest.raises(ValueError, match=message):
        features_of({**RAW, **changes}, tokenizer)


def test_a_number_without_a_line_in_the_vocabulary_is_named(tokenizer):
    with pytest.raises(ValueError, match="'a': .*vocab.txt has no line '13'"):
        features_of({"id": "a", "tokens": [13]}, tokenizer, pairs=7)


def test_scores_stand_beside_those_of_the_constant_answer():
    rows = {"a": [1, 2, 2], "b": [1, 2], "c": [3, 1, 2, 1]}
    made = [
        examples.Example(name, tuple(tokens), tuple(examples.majority_tags(tokens)))
        for name, tokens in rows.items()
    ]
    predictions = {"a": [2, 2, 2], "b": [1, 2], "d": [1]}
    assert metrics.metrics(made, predictions) == {
        "exact_match": pytest.approx(1 / 3),
        "tag_accuracy": pytest.approx(4 / 9),
        "constant_exact_match": pytest.approx(2 / 3),
        "constant_tag_accuracy": pytest.approx(6 / 9),
    }
    short = metrics.metrics(made[:1], {"a": [2, 2]})
    assert (short["exact_match"], short["tag_accuracy"]) == (0.0, 0.0)


def test_without_tags_nothing_is_measured():
    with pytest.raises(ValueError, match="example 'a': field `tags` is missing"):
        metrics.metrics([examples.Example("a", (1,))], {})
    with pytest.raises(ValueError, match="two examples with the id 'a'"):
        metrics.metrics([examples.Example("a", (1,), (1,))] * 1 + [_other()], {})
    with pytest.raises(ValueError, match="There is no token to evaluate"):
        metrics.metrics([], {})


def _other():
    return examples.Example("a", (2,), (2,))


@pytest.mark.parametrize("example_id", [b"\xc3\xa9", [b"\xc3\xa9"], np.array(["é"])])
def test_predictions_are_of_tokens_alone(example_id):
    logits = np.eye(4)[[1, 0, 3, 2]]
    mask = np.array([1, 1, 1, 0])
    output = {"logits": logits, "attention_mask": mask, "example_id": example_id}
    assert metrics.prediction(output) == {"id": "é", "prediction": [2, 1, 4]}


def test_the_demo_is_drawn_evenly_and_the_constant_answer_is_right_as_often_as_it_must():
    made = demo.make_examples(split="train", num_examples=3000, seed=0, length=16)
    tokens = np.array([example["tokens"] for example in made])
    assert abs((tokens == 1).mean() - 0.5) < 0.01
    found = metrics.metrics([examples.parse_example(raw) for raw in made], {})
    wanted = 0.5 + 0.5 * math.comb(16, 8) / 2**16  # All but half of the ties.
    assert found["constant_exact_match"] == pytest.approx(wanted, abs=0.03)


def test_the_demo_has_the_length_that_is_asked_for():
    made = demo.make_examples(split="train", num_examples=5, seed=0, length=9, pairs=3)
    assert {len(example["tokens"]) for example in made} == {9}
