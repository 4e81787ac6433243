"""What one scores on WikiHop's format without reading: the least that a model has to beat.

Every baseline takes the lists of training examples and of those to answer, and returns predictions
in the official format, {id: answer}.
"""

import collections
import re

__all__ = ["BASELINES"]


def _mentions(example, words):
    """Where words stand in the documents put together: list of int."""
    text = " ".join(example["supports"]).lower()
    return [m.start() for m in re.finditer(rf"(?<!\w){re.escape(words.lower())}(?!\w)", text)]


def _least(value_of):
    """A baseline that takes each example's first candidate of the least `value_of`."""

    def predict(unused_train, examples):
        return {
            example["id"]: min(example["candidates"], key=lambda c: value_of(example, c))
            for example in examples
        }

    return predict


def _distance_to_query(example, candidate):
    """From its mentions to the query's words, in characters."""
    words = re.findall(r"[^\W_]+", example["query"])
    places = [place for word in words for place in _mentions(example, word)]
    mentions = _mentions(example, candidate)
    return min((abs(m - p) for m in mentions for p in places), default=float("inf"))


def most_frequent_answer(train, examples):
    """The candidate that was the answer to most training questions of the same first word."""
    counts = collections.Counter((_kind(example), example["answer"]) for example in train)
    return {
        example["id"]: max(example["candidates"], key=lambda c: counts[_kind(example), c])
        for example in examples
    }


def _kind(example):
    return " ".join(example["query"].split()[:1])


BASELINES = {
    "first candidate": _least(lambda example, c: example["candidates"].index(c)),
    "last candidate": _least(lambda example, c: -example["candidates"].index(c)),
    "mentioned most": _least(lambda example, c: -len(_mentions(example, c))),
    "mentioned least": _least(lambda example, c: len(_mentions(example, c))),
    "mentioned first": _least(lambda example, c: min(_mentions(example, c), default=float("inf"))),
    "mentioned last": _least(lambda example, c: -max(_mentions(example, c), default=-1)),
    "nearest to a word of the query": _least(_distance_to_query),
    "most frequent in training": most_frequent_answer,
}
