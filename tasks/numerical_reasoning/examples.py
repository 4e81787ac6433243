"""Examples: JSON objects with `id`, `question`, `passage` and, where it is known, `answer`."""

import dataclasses

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, require_object

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


def parse_example(raw):
    """The `Example` of a JSON object; its `answer` may be a whole number.

    Raises:
        ValueError: naming the example and its field, if it is malformed.
    """
    require_object(raw)
    fields = Fields(raw.get("id"), raw)
    texts = [fields.text(name) for name in ("id", "question", "passage")]
    for name, text in zip(("id", "question", "passage"), texts, strict=True):
        if not text.strip():
            raise fields.error(name, "must not be empty", text)
    fields.check_utf8("id", texts[0])
    answer = raw.get("answer")
    if answer is not None:
        answer = fields.label("answer")
        if answer is None:
            raise fields.error("answer", "must not be empty", "")
    return Example(*texts, answer, fields.text("kind", optional=True) or "")


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)
