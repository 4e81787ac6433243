"""Varied copies of a few real examples, as many as are wanted, for programs that need much text.

Half of a copy's words are other words of the same example, and a few are new ones, made of two of
its halves, so that what remembers words meets new ones, as in true text. What labels rest on stays
as it is, or is made anew: a copy can be trained on where its example can.
"""

import itertools
import json
import random

from etcmodel import atomic_files
from etcmodel.preprocessing import raw_files

__all__ = ["MAKERS", "copies", "write"]

_KEPT, _OTHER, _NEW = range(3)
_WEIGHTS = {_KEPT: 50, _OTHER: 47, _NEW: 3}
_JSON_LINES = ("nq", "openkp")  # The others have one array.


def _is_tag(word):
    return word.startswith("<")


def _varied(words, pool, rng):
    """As many words as given; empty ones and tags stay, whatever becomes of the others."""
    kinds = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=len(words))
    others = rng.choices(pool, k=len(words))
    return list(map(_word, kinds, words, others))


def _word(kind, word, other):
    if kind == _KEPT or not word or _is_tag(word):
        return word
    return other if kind == _OTHER else word[: (len(word) + 1) // 2] + other[len(other) // 2 :]


def _pool(texts):
    """The words that may take the place of others."""
    return [word for text in texts for word in text.split() if not _is_tag(word)] or ["word"]


def _varied_text(text, pool, rng):
    return " ".join(_varied(text.split(" "), pool, rng))


def _hotpotqa(raw):
    """Titles stay, and sentences with the answer: it would be missing."""
    pool = _pool(sentence for _, sentences in raw["context"] for sentence in sentences)
    answer = raw.get("answer") or ""
    keeps = answer if answer not in ("yes", "no", "") else "\0"

    def make(rng, number):
        context = [
            [title, [x if keeps in x else _varied_text(x, pool, rng) for x in sentences]]
            for title, sentences in raw["context"]
        ]
        question = _varied_text(raw["question"], pool, rng)
        return {**raw, "_id": f"{number:024x}", "question": question, "context": context}

    return make


def _nq(raw):
    """Tags and candidates stay where they are."""
    pool = _pool([raw["document_text"]])

    def make(rng, number):
        text = _varied_text(raw["document_text"], pool, rng)
        question = _varied_text(raw["question_text"], pool, rng)
        return {**raw, "document_text": text, "question_text": question, "example_id": number}

    return make


def _openkp(raw):
    """The elements are the same words of another text; key phrases are places of that text."""
    pool, elements = _pool([raw["text"]]), json.loads(raw["VDOM"])
    lengths = [len(words) for words in raw["KeyPhrases"] if words]

    def make(rng, number):
        words = _varied(raw["text"].split(" "), pool, rng)
        vdom = [
            {**element, "text": " ".join(words[element["start_idx"] : element["end_idx"]])}
            for element in elements
        ]
        starts = [rng.randrange(len(words) - length + 1) for length in lengths]
        phrases = [words[start : start + n] for start, n in zip(starts, lengths, strict=True)]
        return {
            "url": f"{raw['url']}?{number}",
            "text": " ".join(words),
            "VDOM": json.dumps(vdom),
            "KeyPhrases": phrases,
        }

    return make


def _wikihop(raw):
    """Candidates and query stay."""
    pool = _pool(raw["supports"])

    def make(rng, number):
        supports = [_varied_text(text, pool, rng) for text in raw["supports"]]
        return {**raw, "id": f"{raw['id']}_{number}", "supports": supports}

    return make


# By data set: function of a raw example to a function of (random.Random, number) to a copy.
MAKERS = {"hotpotqa": _hotpotqa, "nq": _nq, "openkp": _openkp, "wikihop": _wikihop}


def copies(dataset, raw_examples, seed=0):
    """Yields copies without end, one of each example in turn.

    Args:
        dataset: str. A key of `MAKERS`.
        raw_examples: list of dict, not empty. HotpotQA's in the authors' layout, Natural
            Questions' in the simplified one.
        seed: int. With the number of a copy it decides its words.
    """
    makers = [MAKERS[dataset](raw) for raw in raw_examples]
    for number in itertools.count():
        yield makers[number % len(makers)](random.Random(f"{seed} {number}"), number)


def write(dataset, source, path, num_bytes, seed=0):
    """Writes a raw file of copies, streamed, until it has at least so many bytes.

    Args:
        dataset, seed: as of `copies`.
        source: str. A raw file of the data set.
        path: str. The new file, which gets its name when it is complete.
        num_bytes: int.
    Returns:
        int. The number of examples.
    """
    examples = copies(dataset, list(raw_files.read_json_values(source)), seed)
    start, between, end = ("", "\n", "\n") if dataset in _JSON_LINES else ("[\n", ",\n", "\n]\n")
    size = count = 0
    with atomic_files.new_file(path) as name, open(name, "w", encoding="utf-8") as file:
        while not count or size < num_bytes:
            size += file.write(between if count else start)
            size += file.write(json.dumps(next(examples)))  # ASCII: characters are bytes.
            count += 1
        file.write(end)
    return count
