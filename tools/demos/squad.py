"""Invented questions in SQuAD 2.0's layout, each about a paragraph, easy enough for a small model.

A paragraph tells four things of a person, each of another kind, among sentences that tell nothing;
the question asks for one of them, or for a fifth, which the paragraph does not tell.
"""

import json

from etcmodel.tools.demos import made_up
from etcmodel.tools.demos.hotpotqa import VALUES
from etcmodel.tools.demos.triviaqa import FACTS, MODEL, document, name_of

__all__ = ["MODEL", "make_examples", "texts", "to_text"]

_NO_ANSWER = 0.3  # Share of the questions.


def _make_example(rng, split, index, unanswerable=_NO_ANSWER):
    """An article of one paragraph with one question, of which that share has no answer."""
    person, kinds = name_of(rng, made_up.PERSON), rng.sample([*FACTS], len(FACTS))
    values = {kind: rng.choice(VALUES[kind]) for kind in kinds[1:]}
    told = [FACTS[kind][1].format(s=person, v=value) for kind, value in values.items()]
    context = document(rng, told)
    asked = kinds[int(rng.random() >= unanswerable)]
    answers = []
    if asked in values:
        sentence = FACTS[asked][1].format(s=person, v=values[asked])
        place = context.index(sentence) + sentence.index(f" {values[asked]}") + 1
        answers = [{"text": values[asked], "answer_start": place}]
    question = {
        "id": f"demo_{split}_{index}",
        "question": FACTS[asked][0].format(s=person),
        "answers": answers,
        "is_impossible": not answers,
    }
    return {"title": person, "paragraphs": [{"context": context, "qas": [question]}]}


make_examples = made_up.example_maker(_make_example)


def texts(example):
    """Every text of an example that a model reads."""
    (paragraph,) = example["paragraphs"]
    return [paragraph["context"], *(x["question"] for x in paragraph["qas"])]


def to_text(examples):
    """The JSON of SQuAD's file, an article a line."""
    return '{"version": "v2.0", "data": [\n' + ",\n".join(map(json.dumps, examples)) + "\n]}\n"
