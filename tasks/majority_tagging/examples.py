"""Examples: JSON objects with `id`, `tokens` and, unless they are to be found, `tags`."""

import dataclasses

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, require_object

__all__ = ["Example", "parse_example", "read_examples"]


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


def parse_example(raw):
    """The `Example` of a JSON object.

    Raises:
        ValueError: naming the example and its field, if it is malformed.
    """
    require_object(raw)
    fields = Fields(raw.get("id"), raw)
    example_id = fields.text("id")
    fields.check_utf8("id", example_id)
    tokens = _numbers(fields, "tokens")
    if not tokens:
        raise fields.error("tokens", "must not be empty", [])
    if raw.get("tags") is None:
        return Example(example_id, tokens)
    tags = _numbers(fields, "tags")
    if len(tags) != len(tokens):
        problem = f"must have as many numbers as `tokens`, {len(tokens)}"
        raise fields.error("tags", problem, list(tags))
    return Example(example_id, tokens, tags)


def _numbers(fields, name):
    numbers = tuple(fields.list_of(name, int, "integers"))
    if numbers and min(numbers) < 1:
        raise fields.error(name, "must hold numbers from 1 on", list(numbers))
    return numbers


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)
