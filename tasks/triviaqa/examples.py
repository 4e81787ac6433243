"""Reads TriviaQA's questions and documents, and finds answers in them."""

import dataclasses
import os
import re
import string
from typing import NamedTuple

import tensorflow as tf

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, identified, is_encodable
from etcmodel.shown_values import shown
from etcmodel.text import normalized_search

__all__ = [
    "PROBLEMS",
    "EvidenceError",
    "Page",
    "TriviaQaExample",
    "check_folder",
    "find_answers",
    "normalize_answer",
    "parse_example",
    "read_document",
    "read_examples",
    "read_questions",
]

# Equality of answers as in TriviaQA's official script, and search for answers in a text.


_SEPARATORS = string.punctuation + "\u2018\u2019\u00b4`"  # Including non-ASCII quotes.
_TO_SPACES = str.maketrans(dict.fromkeys(_SEPARATORS, " "))
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text):
    """Lower-cases a text; replaces punctuation, underscores, articles and white space by a space.

    Source: Joshi et al. 2017 (arXiv:1705.03551) and their script `triviaqa_evaluation.py`.
    """
    text = text.replace("_", " ").lower().translate(_TO_SPACES)
    return " ".join(_ARTICLES.sub(" ", text).split())


def find_answers(text, answers):
    """The places where whole words of a text match an answer: see `text.normalized_search`."""
    return normalized_search.find_normalized(text, answers, normalize_answer, _SEPARATORS)


# Reads the documents of questions, which are separate files.


PROBLEMS = ("malformed", "missing", "undecodable", "empty")


class EvidenceError(ValueError):
    """Raised for a document that cannot be used; `kind` is one of `PROBLEMS`."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def check_folder(folder):
    """Raises ValueError if `--evidence_dir` is given and is not a folder."""
    if folder is not None and not tf.io.gfile.isdir(folder):
        raise ValueError(f"--evidence_dir: no such folder: {folder!r}")


def read_document(page, folder):
    """The text of a `Page`, not blank; it may be in a file in `--evidence_dir`.

    Raises:
        EvidenceError: naming the file, if it is missing, cannot be decoded, or is empty; or naming
            the field of the raw question, if it does not identify a file.
    """
    if page.problem:
        raise EvidenceError("malformed", page.problem)
    text, source = page.text, f"{page.source}/{page.name}"
    if text is None and (path := _path(page, folder)) is None:
        where = f"no such file in {folder}" if folder else "--evidence_dir is not given"
        raise EvidenceError("missing", f"{source}: {where}")
    try:
        if text is None:
            text = raw_files.read_text(path, is_metered=False)
        raw_files.check_utf8(text)  # Text from JSON may have half of a surrogate pair.
    except ValueError as error:
        raise EvidenceError("undecodable", f"{source}: {error}") from error
    if not text.strip():
        raise EvidenceError("empty", f"{source}: the document is empty")
    return text


def _path(page, folder):
    """The file of a document, or None. Names must not lead out of the folder."""
    parts = page.name.split("/")
    if not folder or "\0" in page.name or not {"", ".", ".."}.isdisjoint(parts):
        return None
    paths = (os.path.join(folder, page.source, *parts), os.path.join(folder, *parts))
    return next((x for x in paths if tf.io.gfile.exists(x) and not tf.io.gfile.isdir(x)), None)


# Typed examples, and the files that have them.


class _Layout(NamedTuple):
    """The names of a question's fields.

    `documents` are the fields with documents, the folder of each one's files (a `Page`'s source),
    and what holds their texts. `answers` are fields within `answer`.
    """

    example_id: str
    question: str
    answer: str
    answers: tuple
    file: str
    documents: tuple


_ORIGINAL = _Layout(
    example_id="QuestionId",
    question="Question",
    answer="Answer",
    answers=("NormalizedAliases", "HumanAnswers"),
    file="Filename",
    documents=(("EntityPages", "wikipedia", "Text"), ("SearchResults", "web", "Text")),
)
_HUGGING_FACE = _Layout(
    example_id="question_id",
    question="question",
    answer="answer",
    answers=("normalized_aliases",),
    file="filename",
    documents=(
        ("entity_pages", "wikipedia", "wiki_context"),
        ("search_results", "web", "search_context"),
    ),
)
_VERIFIED_QUESTION, _VERIFIED_PAGE = "QuestionPartOfVerifiedEval", "DocPartOfVerifiedEval"
_UNKNOWN_ANSWER = "<unk>"  # From Hugging Face, in sets without answers.


class Page(NamedTuple):
    """A document: its `source`, "wikipedia" or "web", and the `name` of its file, or its `text`."""

    source: str
    name: str
    text: str | None = None
    is_verified: bool = False  # Annotators confirmed that it contains the answer.
    problem: str = ""  # Why it cannot be used; its name is then its place.


@dataclasses.dataclass(frozen=True)
class TriviaQaExample:
    """A question with its `Page`s."""

    example_id: str
    question: str
    pages: tuple
    answers: tuple | None = None  # All correct answers, normalized; None if the file has none.
    is_verified: bool = False  # Whether it is in the verified part of the data.

    def keys(self, by_document):
        """dict from the keys of answers in the official script to whether they are verified."""
        name, is_verified = self.example_id, self.is_verified
        if not by_document:
            return {name: is_verified}
        pages = [page for page in self.pages if not page.problem]
        return {document_key(name, x.name): is_verified and x.is_verified for x in pages}


def document_key(example_id, name):
    """The key of the answer to a question from one document: str."""
    return f"{example_id}--{name}"


def parse_example(raw, needs_labels=False):
    """Parses an item of the list `Data`, or of Hugging Face `datasets`, to a `TriviaQaExample`.

    Args:
        raw: dict. With `QuestionId`, `Question`, maybe `Answer`, and `EntityPages` or
            `SearchResults`, lists of objects with a `Filename`, or else with a `Text`. Or the
            layout of Hugging Face `datasets`: `question_id`, `question`, `answer`, `entity_pages`
            with `wiki_context`, `search_results` with `search_context`. A malformed document is
            skipped by itself.
        needs_labels: bool. Whether an answer is required, as for training.
    Raises:
        ValueError: naming the example's id and the field that is missing or malformed.
    """
    fields = identified(raw, _ORIGINAL.example_id, _HUGGING_FACE.example_id)
    is_original = _ORIGINAL.question in raw or _HUGGING_FACE.question not in raw
    layout = _ORIGINAL if is_original else _HUGGING_FACE
    question = fields.filled_text(layout.question)
    pages = [
        _page(page, f"{field}[{index}]", source, layout.file, text_field)
        for field, source, text_field in layout.documents
        for index, page in enumerate(fields.objects(field, optional=True))
    ]
    if needs_labels:
        fields.check_labels(layout.answer)
    answers = _answers(fields, layout)
    is_verified = raw.get(_VERIFIED_QUESTION)
    if problem := _problem_of_flag(is_verified):
        raise fields.error(_VERIFIED_QUESTION, problem, is_verified)
    return TriviaQaExample(fields.example_id, question, tuple(pages), answers, is_verified is True)


def _page(raw, place, source, file_field, text_field):
    name, text = raw.get(file_field), raw.get(text_field)
    if text is not None and name in (None, ""):
        name = place
    if text is not None and not isinstance(text, str):
        problem = f"field `{place}.{text_field}` must be a string. Received: {shown(text)}"
    elif not (isinstance(name, str) and name and is_encodable(name)):
        problem = (
            f"field `{place}.{file_field}` must be the name of a file. Received: {shown(name)}"
        )
    elif flag := _problem_of_flag(raw.get(_VERIFIED_PAGE)):
        value = shown(raw[_VERIFIED_PAGE])
        problem = f"field `{place}.{_VERIFIED_PAGE}` {flag}. Received: {value}"
    else:
        return Page(source, name, text, raw.get(_VERIFIED_PAGE) is True)
    return Page(source, place, problem=problem)


def _problem_of_flag(value):
    """What is wrong with a flag, which may be missing: str; '' for nothing."""
    return "" if value is None or isinstance(value, bool) else "must be true or false"


def _answers(fields, layout):
    """The answers that the official script accepts."""
    answer = fields.raw.get(layout.answer)
    if answer is None:
        return None
    if not isinstance(answer, dict):
        raise fields.error(layout.answer, "must be an object", answer)
    within = Fields(fields.example_id, answer)
    names = layout.answers
    found = [x for name in names for x in within.list_of(name, str, "strings", optional=True)]
    if not found and answer.get("value") == _UNKNOWN_ANSWER:
        return None
    answers = tuple(dict.fromkeys(map(normalize_answer, found)))
    if not any(answers):
        raise fields.error(layout.answer, f"must have `{names[0]}`", answer)
    return answers


def read_questions(path):
    """Streams the questions of a file: dicts with `place`, such as "element 0", and `question`.

    Args:
        path: str. TriviaQA's JSON, an object with the list `Data`; or questions as JSON lines, a
            JSON array, Parquet or Arrow.
    """
    for place, question in raw_files.read_json_elements(path, "Data"):
        yield {"place": place, "question": question}


read_examples = raw_files.example_reader(
    lambda path: raw_files.read_json_elements(path, "Data"), parse_example
)
