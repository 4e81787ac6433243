"""Examples: JSON objects with `id`, `question`, `passage` and, where it is known, `answer`."""

import dataclasses

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified

__all__ = ["Example", "parse_example", "read_examples"]


@dataclasses.dataclass(frozen=True)
class Example:
    """A question on a passage.

    Attributes:
        example_id, question, passage: str.
        answer: str, or None if it is not known.
        kind: str. Of which kind the question is; '' if that is not known.
    """

    example_id: str
    question: str
    passage: str
    answer: str | None = None
    kind: str = ""


def parse_example(raw, needs_labels=False):
    """The `Example` of a JSON object; its `id` and its `answer` may be whole numbers.

    Args:
        raw: dict.
        needs_labels: bool. Whether the answer must be there, as training needs it.
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
