"""Reads SQuAD's questions, in its own files or one a row, as Hugging Face `datasets` has them."""

import dataclasses
from typing import NamedTuple

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, identified, is_int, is_list_of

__all__ = [
    "Answer",
    "SquadExample",
    "has_unanswerable",
    "parse_example",
    "read_examples",
    "read_questions",
]


class Answer(NamedTuple):
    """An answer: its `text`, and the characters `[start, end)` of the context; -1 if not read."""

    text: str
    start: int = -1
    end: int = -1


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """A question about a text; `answers` are a tuple of `Answer`, or None if they are not known."""

    example_id: str
    question: str
    context: str
    answers: tuple | None = None


def parse_example(raw, needs_labels=False):
    """Parses a question to a `SquadExample`.

    Args:
        raw: dict, as of `read_questions`: `id`, `question`, `context`, and maybe `answers`, a list
            of objects with `text` and `answer_start`, or an object of two lists. An empty one, or
            `is_impossible`, says that there is no answer.
        needs_labels: bool. Whether answers and their places are required, as for training.
    Raises:
        ValueError: naming the example's id and the field that is missing or malformed, such as a
            place where the context has another text than the answer.
    """
    fields = identified(raw, "id")
    question, context = map(fields.filled_text, ("question", "context"))
    for name in ("question", "context"):
        fields.check_utf8(name, raw[name])
    if needs_labels:
        fields.check_labels("answers")
    answers, is_impossible = None, raw.get("is_impossible")
    if is_impossible not in (None, True, False):
        raise fields.error("is_impossible", "must be true or false", is_impossible)
    if raw.get("answers") is not None:
        found = fields.objects("answers")
        if is_impossible and found:
            raise fields.error("answers", "must be empty where `is_impossible` is true", found)
        answers = tuple(_answer(fields, answer, context, needs_labels) for answer in found)
    elif is_impossible:
        answers = ()
    return SquadExample(fields.example_id, question, context, answers)


def _answer(fields, raw, context, needs_place):
    within = Fields(fields.example_id, raw)
    text, start = within.text("text"), raw.get("answer_start")
    if not needs_place:
        return Answer(text)
    if not text.strip():
        raise within.error("text", "must not be empty", text)
    if not is_int(start) or start < 0 or context[start : start + len(text)] != text:
        there = context[start : start + len(text)] if is_int(start) and start >= 0 else ""
        problem = f"must be where the context has the answer {text!r}; there it has {there!r}"
        raise within.error("answer_start", problem, start)
    start += len(text) - len(text.lstrip())
    return Answer(text, start, start + len(text.strip()))


def read_questions(path):
    """Streams the questions of a file: dicts with `place` and `question`, a raw example.

    Args:
        path: str. SQuAD's JSON, an object with articles in `data`; or questions with their
            contexts, as JSON lines, a JSON array, Parquet or Arrow.
    """
    for place, value in raw_files.read_json_elements(path, "data"):
        if not (isinstance(value, dict) and "paragraphs" in value):
            yield {"place": place, "question": value}
            continue
        for name, context, question in _questions(value):
            if isinstance(question, dict):
                question = {**context, **question}
            yield {"place": f"{place}, {name}", "question": question}


def _questions(article):
    """(name, fields of the paragraph, raw question) of an article's questions."""
    paragraphs = article["paragraphs"]
    if not is_list_of(paragraphs, dict):
        yield "paragraphs", {}, raw_files.unreadable("`paragraphs` must be a list of objects")
        return
    for number, paragraph in enumerate(paragraphs):
        name = f"paragraphs[{number}]"
        if not isinstance(paragraph.get("qas"), list):
            yield name, {}, raw_files.unreadable("a paragraph must have a list `qas`")
            continue
        context = {key: value for key, value in paragraph.items() if key != "qas"}
        for index, question in enumerate(paragraph["qas"]):
            yield f"{name}.qas[{index}]", context, question


def has_unanswerable(input_pattern):
    """Whether a question of raw files has no answer: bool; malformed ones do not count."""
    from etcmodel.preprocessing import input_files  # Imports TensorFlow, which takes seconds.

    for path in input_files(input_pattern):
        for row in read_questions(path):
            try:
                raw_files.check_readable(row["question"])
                if parse_example(row["question"]).answers == ():
                    return True
            except ValueError:  # Preprocessing counts and reports it.
                continue
    return False


def _rows(path):
    return ((row["place"], row["question"]) for row in read_questions(path))


read_examples = raw_files.example_reader(_rows, parse_example, noun="questions")
