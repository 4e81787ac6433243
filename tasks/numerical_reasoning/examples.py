"""Examples: JSON objects with `id`, `question`, `passage` and, if known, `answer`."""

import dataclasses

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified

__all__ = ["Example", "parse_example", "read_examples"]


@dataclasses.dataclass(frozen=True)
class Example:
    """A question about a passage.

    Attributes:
        example_id, question, passage: str.
        answer: str, or None if it is not known.
        kind: str. The kind of question; '' if it is not known.
    """

    example_id: str
    question: str
    passage: str
    answer: str | None = None
    kind: str = ""


def parse_example(raw, needs_labels=False):
    """Makes an `Example` from a JSON object, whose `id` and `answer` may be integers.

    Args:
        raw: dict.
        needs_labels: bool. Whether an answer is required, as for training.
    Raises:
        ValueError: naming the example and its field, if it is malformed.
    """
    fields = identified(raw, "id")
    if needs_labels:
        fields.check_labels("answer")
    question, passage = fields.filled_text("question"), fields.filled_text("passage")
    answer = raw.get("answer")
    if answer is not None:
        answer = fields.label("answer")
        if answer is None:
            raise fields.error("answer", "must not be empty", "")
    kind = fields.text("kind", optional=True) or ""
    return Example(fields.example_id, question, passage, answer, kind)


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)
