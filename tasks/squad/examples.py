"""Reads SQuAD's questions, in its own files or one a row, as Hugging Face `datasets` has them.

Also HotpotQA's, whose paragraphs are joined to one context (Gupta and Berant 2020,
arXiv:2006.03274, section 4.4 and appendix A.3).
"""

import dataclasses
import random
from typing import NamedTuple

from etcmodel.preprocessing import hotpotqa_files, raw_files
from etcmodel.preprocessing.json_fields import Fields, identified, is_int, is_list_of
from etcmodel.text import alignment

from .config import ArrangementOptions

__all__ = [
    "Answer",
    "SquadExample",
    "document_of",
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
    """A question about a text.

    Attributes:
        example_id, question, context: str.
        answers: tuple of `Answer`, or None if they are not known.
        kind: str or None. HotpotQA's type of the question ("" if it is not known); None for SQuAD.
        facts: tuple of (start, end), the characters of HotpotQA's supporting sentences.
    """

    example_id: str
    question: str
    context: str
    answers: tuple | None = None
    kind: str | None = None
    facts: tuple = ()


def parse_example(raw, needs_labels=False, arrangement=None):
    """Parses a question to a `SquadExample`.

    Args:
        raw: dict, as of `read_questions`: `id`, `question`, `context`, and maybe `answers`, a list
            of objects with `text` and `answer_start`, or an object of two lists. An empty one, or
            `is_impossible`, says that there is no answer. Or one of HotpotQA's: see
            `preprocessing.hotpotqa_files`.
        needs_labels: bool. Whether answers and their places are required, as for training.
        arrangement: `ArrangementOptions` of HotpotQA's paragraphs; None: their defaults.
    Raises:
        ValueError: naming the example's id and the field that is missing or malformed, such as a
            place where the context has another text than the answer; or, with labels, a text where
            the arrangement is of paragraphs.
    """
    if isinstance(raw, dict) and isinstance(raw.get("context"), (list, dict)):
        found = hotpotqa_files.parse_example(raw, needs_labels)
        return _joined(found, needs_labels, arrangement or ArrangementOptions())
    fields = identified(raw, "id")
    question, context = map(fields.filled_text, ("question", "context"))
    options = [x.name for x in dataclasses.fields(ArrangementOptions)]
    if flags := [f"--{x}" for x in options if needs_labels and getattr(arrangement, x, False)]:
        problem = f"must be a list of paragraphs, as HotpotQA's, for {' and '.join(flags)}"
        raise fields.error("context", problem, context)
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


# HotpotQA's paragraphs as one context.


_CLOSED = "<a> yes no </a>"  # Where a span can be yes or no.
_ENDS = 3  # Paragraphs that count as first, and as last.


def _joined(found, needs_labels, arrangement):
    """The `SquadExample` of a `HotpotQAExample`; see `parse_example`."""
    name = f"example {found.example_id!r}: field"
    if not found.paragraphs:
        raise ValueError(f"{name} `context` must not be empty.")
    wanted = {tuple(fact) for fact in found.supporting_facts or ()}
    gold = [x.title in {title for title, _ in wanted} for x in found.paragraphs]
    order = range(len(gold))
    if arrangement.gold_separated and any(gold):
        order = _separated(gold, found.example_id)
    text, facts, places = "", [], []
    for index in order:
        paragraph, first = found.paragraphs[index], len(text)
        text += f"{_CLOSED} {paragraph.title} "
        for number, sentence in enumerate(paragraph.sentences):
            if (paragraph.title, number) in wanted:
                facts.append((len(text), len(text) + len(sentence)))
            text += sentence
        if gold[index]:
            places += _answers(text, first, found.answer)
        text += f" {found.question} " if arrangement.repeat_question else " "
    if needs_labels and not places:
        problem = "must be in a paragraph with a supporting fact"
        raise ValueError(f"{name} `answer` {problem}. Received: {found.answer!r}")
    if not needs_labels:
        places = [Answer(found.answer)] if found.answer is not None else None
    answers = None if places is None else tuple(places)
    return SquadExample(found.example_id, found.question, text, answers, found.type, tuple(facts))


def _separated(gold, seed):
    """The order of paragraphs with a gold one among the first three and one among the last."""
    drawn, number = random.Random(seed), len(gold)
    order = [x for x in range(number) if not gold[x]]
    golds = [x for x in range(number) if gold[x]]
    drawn.shuffle(golds)
    near = min(_ENDS, number // 2)
    order.insert(drawn.randrange(max(near, 1)), golds[0])
    for later in golds[1:]:
        order.insert(len(order) - drawn.randrange(max(near, 1)), later)
    return order


def _answers(text, first, answer):
    """The places of an answer in a paragraph, which is the text from the character `first` on."""
    if answer in ("yes", "no"):
        start = text.index(answer, first)
        return [Answer(answer, start, start + len(answer))]
    first += len(_CLOSED)
    for find in (alignment.find_word_spans, alignment.find_char_spans):
        if spans := find(text[first:], answer or ""):
            places = [(first + a, first + b + 1) for a, b in spans]
            return [Answer(text[a:b], a, b) for a, b in places]
    return []


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
    """(name, title and fields of the paragraph, raw question) of an article's questions."""
    paragraphs = article["paragraphs"]
    if not is_list_of(paragraphs, dict):
        yield "paragraphs", {}, raw_files.unreadable("`paragraphs` must be a list of objects")
        return
    title = {"title": article["title"]} if "title" in article else {}
    for number, paragraph in enumerate(paragraphs):
        name = f"paragraphs[{number}]"
        if not isinstance(paragraph.get("qas"), list):
            yield name, {}, raw_files.unreadable("a paragraph must have a list `qas`")
            continue
        context = title | {key: value for key, value in paragraph.items() if key != "qas"}
        for index, question in enumerate(paragraph["qas"]):
            yield f"{name}.qas[{index}]", context, question


def document_of(raw):
    """The `title` of the article of a raw example of `read_questions`: str; '' for none."""
    title = raw.get("title")
    return title if isinstance(title, str) else ""


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
