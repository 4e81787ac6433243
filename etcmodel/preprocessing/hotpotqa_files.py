"""Reads HotpotQA's JSON files, in the authors' layout or that of Hugging Face `datasets`."""

import dataclasses
import math
from typing import NamedTuple

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import Fields, id_of, is_int, is_list_of


class SupportingFact(NamedTuple):
    """A supporting sentence of the answer: its paragraph's title and its index, from 0."""

    title: str
    sentence_index: int


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A paragraph of the context: its title and its sentences, with their original spacing."""

    title: str
    sentences: tuple


@dataclasses.dataclass(frozen=True)
class HotpotQAExample:
    """One question.

    `answer` and `supporting_facts` are None if the file has no labels. `scores` is what the field
    `paragraphs` holds, as a first stage scored them; None without one. Few programs read it, so
    `parse_scores` checks it where it is read.
    """

    example_id: str
    question: str
    paragraphs: tuple
    answer: str | None = None
    supporting_facts: tuple | None = None
    type: str = ""
    level: str = ""
    scores: object = None


def parse_example(raw, needs_labels=False):
    """Parses and checks a JSON object.

    Args:
        raw: dict. Either the authors' layout (`_id`, `context` as [[title, [sentence, …]], …],
            `supporting_facts` as [[title, index], …]) or that of Hugging Face `datasets` (`id`,
            `context` as {"title": […], "sentences": [[…], …]}, `supporting_facts` as
            {"title": […], "sent_id": […]}). Ids may be whole numbers. The labels, `type`, `level`
            and `paragraphs`, which a first stage predicted (see `parse_scores`), may be left out.
        needs_labels: bool. Whether labels are required, as for training.

    Returns:
        A `HotpotQAExample`.

    Raises:
        ValueError: names the example's id and the field that is missing or malformed.
    """
    fields = _Fields(id_of(raw, "_id", "id"), raw)
    if needs_labels:
        fields.check_labels("answer", "supporting_facts")
    answer = fields.text("answer", optional=True)
    facts = None if raw.get("supporting_facts") is None else fields.supporting_facts()
    question = fields.filled_text("question")
    return HotpotQAExample(
        example_id=fields.example_id,
        question=question,
        paragraphs=fields.paragraphs(),
        answer=answer,
        supporting_facts=facts,
        type=fields.text("type", optional=True) or "",
        level=fields.text("level", optional=True) or "",
        scores=raw.get("paragraphs"),
    )


def parse_scores(raw):
    """The (id, scores) of a JSON object of `id` and `paragraphs`, [[title, score], …].

    Returns:
        (str, tuple of (title, float)).
    Raises:
        ValueError: names the example's id and the field that is missing or malformed.
    """
    fields = _Fields(id_of(raw, "id"), raw)
    return fields.example_id, fields.scores()


class _Fields(Fields):
    """Checked access to the fields of one raw example."""

    def paragraphs(self):
        paragraphs = []
        for index, (title, sentences) in enumerate(self._pairs("context", "title", "sentences")):
            field = f"context[{index}]"
            if not isinstance(title, str):
                raise self.error(field, "must start with a title", title)
            if not is_list_of(sentences, str):
                raise self.error(field, "must have a list of sentences", sentences)
            paragraphs.append(Paragraph(title, tuple(sentences)))
        return tuple(paragraphs)

    def supporting_facts(self):
        facts = []
        pairs = self._pairs("supporting_facts", "title", "sent_id")
        for index, (title, sentence_index) in enumerate(pairs):
            is_index = is_int(sentence_index) and sentence_index >= 0
            if not (isinstance(title, str) and is_index):
                field = f"supporting_facts[{index}]"
                problem = "must be a title and a sentence index from 0"
                raise self.error(field, problem, [title, sentence_index])
            facts.append(SupportingFact(title, sentence_index))
        return tuple(facts)

    def scores(self):
        pairs = self._pairs("paragraphs", "title", "score")
        for index, (title, score) in enumerate(pairs):
            is_score = isinstance(score, int | float) and not isinstance(score, bool)
            if not (isinstance(title, str) and is_score and math.isfinite(score)):
                problem = "must be a title and a score"
                raise self.error(f"paragraphs[{index}]", problem, [title, score])
        return tuple(map(tuple, pairs))

    def _pairs(self, field, first, second):
        value = self.get(field)
        if isinstance(value, dict):
            return list(zip(*self.columns(field, value, (first, second)), strict=True))
        if not is_list_of(value, list) or any(len(pair) != 2 for pair in value):
            raise self.error(field, f"must be a list of pairs ({first}, {second})", value)
        return value


read_examples = raw_files.example_reader(raw_files.read_json_elements, parse_example)
