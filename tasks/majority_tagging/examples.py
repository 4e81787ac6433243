"""Examples: JSON objects with `id`, `tokens` and, if known, `tags`."""

import dataclasses

import numpy as np

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified

__all__ = ["Example", "constant_tags", "majority_tags", "parse_example", "read_examples"]


@dataclasses.dataclass(frozen=True)
class Example:
    """A sequence.

    Attributes:
        example_id: str.
        tokens: tuple of int, from 1 on.
        tags: tuple of int, one for each token, or None if they are not known.
    """

    example_id: str
    tokens: tuple
    tags: tuple | None = None


def parse_example(raw, needs_labels=False):
    """Makes an `Example` from a JSON object, whose `id` may be an integer.

    Args:
        raw: dict.
        needs_labels: bool. Whether tags are required, as for training.
    Raises:
        ValueError: naming the example and its field, if it is malformed.
    """
    fields = identified(raw, "id")
    if needs_labels:
        fields.check_labels("tags")
    tokens = _numbers(fields, "tokens")
    if not tokens:
        raise fields.error("tokens", "must not be empty", [])
    if raw.get("tags") is None:
        return Example(fields.example_id, tokens)
    tags = _numbers(fields, "tags")
    if len(tags) != len(tokens):
        problem = f"must have as many numbers as `tokens`, {len(tokens)}"
        raise fields.error("tags", problem, list(tags))
    return Example(fields.example_id, tokens, tags)


def _numbers(fields, name):
    numbers = tuple(fields.list_of(name, int, "integers"))
    if numbers and min(numbers) < 1:
        raise fields.error(name, "must hold numbers from 1 on", list(numbers))
    return numbers


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)


# The correct tags of a sequence (Gupta and Berant 2020, section 3.1).


def majority_tags(tokens):
    """The more frequent member of each token's pair; the odd one in case of a tie.

    The pairs are (1, 2), (3, 4) …

    Args:
        tokens: int [length], at least 1.
    Returns:
        int [length].
    """
    odd = constant_tags(tokens)
    counts = np.bincount(tokens, minlength=np.max(odd, initial=0) + 2)
    return np.where(counts[odd] >= counts[odd + 1], odd, odd + 1)


def constant_tags(tokens):
    """The odd member of each token's pair, as a constant prediction: int [length]."""
    tokens = np.asarray(tokens, np.int64)
    return tokens - 1 + tokens % 2
