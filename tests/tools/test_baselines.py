"""The baselines answer in WikiHop's official format, each by its rule."""

import pytest

from etcmodel.tools.demos.baselines import BASELINES

TRAIN = [
    {"query": "color sky", "answer": "blue"},
    {"query": "color sea", "answer": "blue"},
    {"query": "color rose", "answer": "red"},
    {"query": "sound sky", "answer": "red"},
]
EXAMPLE = {
    "id": "x",
    "query": "color house",
    "candidates": ["red", "blue", "deep green", "gray"],
    "supports": [
        "Gray is sad. It is greener. Deep green is deep green.",
        "The house: blue. A redder one is red.",
    ],
}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("first candidate", "red"),
        ("last candidate", "gray"),
        ("mentioned most", "deep green"),
        ("mentioned least", "red"),  # The first of three.
        ("mentioned first", "gray"),
        ("mentioned last", "red"),
        ("nearest to a word of the query", "blue"),
        ("most frequent in training", "blue"),
    ],
)
def test_each_baseline_follows_its_rule(name, answer):
    assert BASELINES[name](TRAIN, [EXAMPLE]) == {"x": answer}


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_candidates_that_nothing_mentions_are_no_error(name):
    bare = {"id": "y", "query": "", "candidates": ["a", "b"], "supports": []}
    assert BASELINES[name]([], [bare])["y"] in ("a", "b")
