"""Predictions and their scores."""

import numpy as np

from etcmodel.finetuning import text_of
from etcmodel.preprocessing.raw_files import by_id

from . import examples as examples_lib

__all__ = ["metrics", "prediction", "scores"]


def prediction(output):
    """The tags of an example.

    Args:
        output: dict of NumPy arrays: `example_id`, `attention_mask` [length] and `logits` [length,
            num_tags].
    Returns:
        dict of `id`, str, and `prediction`, list of int, of as many tags as there are tokens.
    """
    tags = output["logits"].argmax(-1) + 1
    return {
        "id": text_of(output["example_id"]),
        "prediction": tags[output["attention_mask"] > 0].tolist(),
    }


def scores(tags, predictions):
    """Counts the correct sequences and tokens.

    Args:
        tags, predictions: lists of int [length], one per sequence. A prediction of another length
            has no correct token.
    Returns:
        (bool [number of sequences], whether each is fully correct; dict of floats in [0, 1]:
        "exact_match", the fraction of correct sequences, and "tag_accuracy", that of correct
        tokens).
    Raises:
        ValueError: if there is no token.
    """
    rights = [_right(*pair) for pair in zip(tags, predictions, strict=True)]
    num_tokens = sum(map(len, rights))
    if not num_tokens:
        raise ValueError("There is no token to evaluate.")
    exact = np.array([right.all() for right in rights])
    accuracy = sum(right.sum() for right in rights) / num_tokens
    return exact, {"exact_match": float(exact.mean()), "tag_accuracy": float(accuracy)}


def _right(tags, predicted):
    tags, predicted = np.asarray(tags), np.asarray(predicted)
    return tags == predicted if tags.shape == predicted.shape else np.zeros(len(tags), bool)


def metrics(examples, predictions):
    """Scores of predictions, beside those of always predicting the odd number of each pair.

    Args:
        examples: list of `Example`s with tags.
        predictions: dict from id to list of int. Missing predictions are wrong.
    Returns:
        dict of floats in [0, 1]: "exact_match", "tag_accuracy", and "constant_exact_match" and
        "constant_tag_accuracy" of the constant answer.
    Raises:
        ValueError: if there is no example, one has no tags, or two have the same id.
    """
    examples = list(by_id(examples).values())
    if unknown := [example.example_id for example in examples if example.tags is None]:
        raise ValueError(f"example {unknown[0]!r}: field `tags` is missing, so nothing is measured")
    tags = [example.tags for example in examples]
    _, found = scores(tags, [predictions.get(example.example_id, ()) for example in examples])
    _, constant = scores(tags, [examples_lib.constant_tags(example.tokens) for example in examples])
    return {**found, **{f"constant_{name}": value for name, value in constant.items()}}
