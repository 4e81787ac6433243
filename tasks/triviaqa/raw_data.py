"""TriviaQA's JSON: questions with the names of their documents, and all spellings of the answer."""

import dataclasses
from typing import NamedTuple

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, require_object

from .answers import normalize_answer

__all__ = ["Page", "TriviaQaExample", "parse_example", "read_examples", "read_questions"]

# The fields with documents, and the folder of each one's files.
_SOURCES = {"EntityPages": "wikipedia", "SearchResults": "web"}


class Page(NamedTuple):
    """A document: its `source`, of the above, the `name` of its file there, or else its `text`."""

    source: str
    name: str
    text: str | None = None
    is_verified: bool = False  # People found that it tells the answer.


@dataclasses.dataclass(frozen=True)
class TriviaQaExample:
    """A question with its `Page`s."""

    example_id: str
    question: str
    pages: tuple
    answers: tuple | None = None  # All that are right, normalized; None where the file has none.
    is_verified: bool = False  # In the part of the data that people verified.

    def keys(self, by_document):
        """dict of what answers are called, by the official script, to whether they are verified."""
        name, is_verified = self.example_id, self.is_verified
        if not by_document:
            return {name: is_verified}
        return {document_key(name, x.name): is_verified and x.is_verified for x in self.pages}


def document_key(example_id, name):
    """str: what the answer to a question from one document is called."""
    return f"{example_id}--{name}"


def parse_example(raw):
    """The `TriviaQaExample` of a JSON object of the list `Data`.

    Args:
        raw: dict. With `QuestionId`, `Question`, maybe `Answer`, and `EntityPages` or
            `SearchResults`, lists of objects with a `Filename`, or else with a `Text`.
    Raises:
        ValueError: naming the example's id and the field that is missing or malformed.
    """
    require_object(raw)
    example_id = raw.get("QuestionId")
    if not (isinstance(example_id, str) and example_id):
        raise ValueError(f"an example has no field `QuestionId`. Its fields: {sorted(raw)}")
    fields = Fields(example_id, raw)
    fields.check_utf8("QuestionId", example_id)
    question = fields.text("Question")
    if not question.strip():
        raise fields.error("Question", "must not be empty", question)
    pages = [
        _page(fields, f"{field}[{index}]", source, page)
        for field, source in _SOURCES.items()
        for index, page in enumerate(fields.list_of(field, dict, "objects", optional=True))
    ]
    is_verified = raw.get("QuestionPartOfVerifiedEval") is True
    return TriviaQaExample(example_id, question, tuple(pages), _answers(fields), is_verified)


def _page(fields, place, source, raw):
    text = raw.get("Text")
    if not (text is None or isinstance(text, str)):
        raise fields.error(f"{place}.Text", "must be a string", text)
    name = raw.get("Filename", None if text is None else place)
    if not isinstance(name, str) or not name:
        raise fields.error(f"{place}.Filename", "must be the name of a file", name)
    fields.check_utf8(f"{place}.Filename", name)
    return Page(source, name, text, raw.get("DocPartOfVerifiedEval") is True)


def _answers(fields):
    """The answers that the official script takes for right."""
    answer = fields.raw.get("Answer")
    if answer is None:
        return None
    if not isinstance(answer, dict):
        raise fields.error("Answer", "must be an object", answer)
    within = Fields(fields.example_id, answer)
    names = ("NormalizedAliases", "HumanAnswers")
    found = (x for name in names for x in within.list_of(name, str, "strings", optional=True))
    answers = tuple(dict.fromkeys(map(normalize_answer, found)))
    if not any(answers):
        raise fields.error("Answer", "must have `NormalizedAliases`", answer)
    return answers


def read_questions(path):
    """Streams the questions of a file: dict with the `place` of each, and it as `question`."""
    for index, question in enumerate(raw_files.read_json_member(path, "Data")):
        yield {"place": f"Data[{index}]", "question": question}


read_examples = raw_files.example_reader(
    lambda path: ((row["place"], row["question"]) for row in read_questions(path)), parse_example
)
