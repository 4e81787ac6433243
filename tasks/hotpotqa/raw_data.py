"""HotpotQA's files: any valid JSON, the authors' layout or that of Hugging Face `datasets`."""

import dataclasses
from typing import NamedTuple

__all__ = ["HotpotQAExample", "Paragraph", "SupportingFact", "parse_example"]


class SupportingFact(NamedTuple):
    """A sentence that the answer rests on: its paragraph's title and its index, from 0."""

    title: str
    sentence_index: int


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A paragraph of the context: its title and its sentences, which keep their spacing."""

    title: str
    sentences: tuple


@dataclasses.dataclass(frozen=True)
class HotpotQAExample:
    """One question. `answer` and `supporting_facts` are None where the file has no labels."""

    example_id: str
    question: str
    paragraphs: tuple
    answer: str | None = None
    supporting_facts: tuple | None = None
    type: str = ""
    level: str = ""


def parse_example(raw):
    """Checks a JSON object and gives it its type.

    Args:
        raw: dict. Either the authors' layout (`_id`, `context` as [[title, [sentence, …]], …],
            `supporting_facts` as [[title, index], …]) or that of Hugging Face `datasets` (`id`,
            `context` as {"title": […], "sentences": [[…], …]}, `supporting_facts` as
            {"title": […], "sent_id": […]}). The labels, `type` and `level` may be left out.

    Returns:
        A `HotpotQAExample`.

    Raises:
        ValueError: names the example's id and the field that is missing or malformed.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"an example must be a JSON object. Received: {_shown(raw)}")
    example_id = raw.get("_id", raw.get("id"))
    if not isinstance(example_id, str) or not example_id:
        raise ValueError(f"an example has no field `_id` (or `id`). Its fields: {sorted(raw)}")
    fields = _Fields(example_id, raw)
    answer = fields.text("answer", optional=True)
    facts = None if raw.get("supporting_facts") is None else fields.supporting_facts()
    question = fields.text("question")
    if not question.strip():
        raise fields.error("question", "must not be empty", question)
    return HotpotQAExample(
        example_id=example_id,
        question=question,
        paragraphs=fields.paragraphs(),
        answer=answer,
        supporting_facts=facts,
        type=fields.text("type", optional=True) or "",
        level=fields.text("level", optional=True) or "",
    )


class _Fields:
    """Checked access to the fields of one raw example."""

    def __init__(self, example_id, raw):
        self.example_id = example_id
        self.raw = raw

    def error(self, field, problem, value):
        return ValueError(
            f"example {self.example_id!r}: field `{field}` {problem}. Received: {_shown(value)}"
        )

    def get(self, field):
        if field not in self.raw:
            raise ValueError(f"example {self.example_id!r}: field `{field}` is missing")
        return self.raw[field]

    def text(self, field, optional=False):
        value = self.raw.get(field) if optional else self.get(field)
        if isinstance(value, str) or (optional and value is None):
            return value
        raise self.error(field, "must be a string", value)

    def paragraphs(self):
        paragraphs = []
        for index, (title, sentences) in enumerate(self._pairs("context", "title", "sentences")):
            field = f"context[{index}]"
            if not isinstance(title, str):
                raise self.error(field, "must start with a title", title)
            if not _is_list_of(sentences, str):
                raise self.error(field, "must have a list of sentences", sentences)
            paragraphs.append(Paragraph(title, tuple(sentences)))
        return tuple(paragraphs)

    def supporting_facts(self):
        facts = []
        pairs = self._pairs("supporting_facts", "title", "sent_id")
        for index, (title, sentence_index) in enumerate(pairs):
            whole = isinstance(sentence_index, int) and not isinstance(sentence_index, bool)
            if not (isinstance(title, str) and whole and sentence_index >= 0):
                field = f"supporting_facts[{index}]"
                problem = "must be a title and a sentence index from 0"
                raise self.error(field, problem, [title, sentence_index])
            facts.append(SupportingFact(title, sentence_index))
        return tuple(facts)

    def _pairs(self, field, first, second):
        value = self.get(field)
        if isinstance(value, dict):
            columns = [value.get(first), value.get(second)]
            if not _is_list_of(columns, list) or len(columns[0]) != len(columns[1]):
                raise self.error(field, f"must have lists `{first}`, `{second}`, as long", value)
            return list(zip(*columns, strict=True))
        if not _is_list_of(value, list) or any(len(pair) != 2 for pair in value):
            raise self.error(field, f"must be a list of pairs ({first}, {second})", value)
        return value


def _is_list_of(value, item_type):
    return isinstance(value, list) and all(isinstance(item, item_type) for item in value)


def _shown(value):
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
