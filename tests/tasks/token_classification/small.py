"""Invented sentences of people and places, whose names have one word or two."""

import json

import numpy as np

from etcmodel.tasks.token_classification import config
from tests import vocabularies

LABELS = ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")
NAMES = ("ann", "bob", "rio", "ada")
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *NAMES, "##a", "lives", "in", ".", "now"]


def write_vocab(folder):
    return vocabularies.write(folder, VOCAB)


def sentence(random):
    """(words, tags) of a sentence."""
    person, place = (
        [f"{name}a" if random.random() < 0.5 else name for name in random.choice(names, size)]
        for names, size in zip((NAMES[:2], NAMES[2:]), random.integers(1, 3, 2), strict=True)
    )
    words = [*person, "lives", "in", *place, "."]
    tags = [*_tags("PER", person), "O", "O", *_tags("LOC", place), "O"]
    return words, tags


def _tags(kind, words):
    return [f"{'I' if place else 'B'}-{kind}" for place in range(len(words))]


def documents(count, seed):
    """Lists of sentences, each with (words, tags)."""
    random = np.random.default_rng(seed)
    return [[sentence(random) for _ in range(random.integers(1, 4))] for _ in range(count)]


def conll(made):
    """Documents in CoNLL's format, with a column between words and tags."""
    lines = []
    for document in made:
        lines.append("-DOCSTART- -X- O\n\n")
        for words, tags in document:
            lines += [f"{word} X {tag}\n" for word, tag in zip(words, tags, strict=True)] + ["\n"]
    return "".join(lines)


def json_lines(made):
    raws = [
        {"words": [x for x, _ in document], "tags": [x for _, x in document]} for document in made
    ]
    return "".join(f"{json.dumps(raw)}\n" for raw in raws)


def input_config(**options):
    given = {"long_seq_length": 32, "global_seq_length": 8, "labels": LABELS, **options}
    return config.TokenClassificationInputConfig(**given)
