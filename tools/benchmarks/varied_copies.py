"""Varied copies of a few real examples, as many as are wanted, for programs that need much text.

Half of a copy's words are other words of the same example, and a few are new ones, made of two of
its halves, so that what remembers words meets new ones, as in true text. What labels rest on stays
as it is, or is made anew: a copy can be trained on where its example can.
"""

import itertools
import json
import random

from etcmodel import atomic_files
from etcmodel.preprocessing import json_fields, raw_files

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


def _hotpotqa(fields):
    """Titles stay, and sentences with the answer: it would be missing."""
    context = fields.list_of("context", list, "pairs of a title and its sentences")
    pool = _pool(sentence for _, sentences in context for sentence in sentences)
    question, answer = fields.text("question"), fields.text("answer", optional=True) or ""
    keeps = answer if answer not in ("yes", "no", "") else "\0"

    def make(rng, number):
        return {
            **fields.raw,
            "_id": f"{number:024x}",
            "context": [
                [title, [x if keeps in x else _varied_text(x, pool, rng) for x in sentences]]
                for title, sentences in context
            ],
            "question": _varied_text(question, pool, rng),
        }

    return make


def _nq(fields):
    """Tags and candidates stay where they are."""
    page, question = fields.text("document_text"), fields.text("question_text")
    pool = _pool([page])

    def make(rng, number):
        return {
            **fields.raw,
            "document_text": _varied_text(page, pool, rng),
            "question_text": _varied_text(question, pool, rng),
            "example_id": number,
        }

    return make


def _openkp(fields):
    """The elements are the same words of another text; key phrases are places of that text."""
    url, text = fields.text("url"), fields.text("text")
    pool, elements = _pool([text]), json.loads(fields.text("VDOM"))
    num_words, given = text.count(" ") + 1, fields.list_of("KeyPhrases", list, "lists of words")
    lengths = [min(len(words), num_words) for words in given if words]

    def make(rng, number):
        words = _varied(text.split(" "), pool, rng)
        vdom = [
            {**element, "text": " ".join(words[element["start_idx"] : element["end_idx"]])}
            for element in elements
        ]
        starts = [rng.randrange(num_words - length + 1) for length in lengths]
        phrases = [words[start : start + n] for start, n in zip(starts, lengths, strict=True)]
        return {
            "url": f"{url}?{number}",
            "text": " ".join(words),
            "VDOM": json.dumps(vdom),
            "KeyPhrases": phrases,
        }

    return make


def _wikihop(fields):
    """Candidates and query stay."""
    supports, name = fields.list_of("supports", str, "texts"), fields.text("id")
    pool = _pool(supports)

    def make(rng, number):
        texts = [_varied_text(text, pool, rng) for text in supports]
        return {**fields.raw, "id": f"{name}_{number}", "supports": texts}

    return make


# By data set: function of the `json_fields.Fields` of a raw example to a function of
# (random.Random, number) to a copy.
MAKERS = {"hotpotqa": _hotpotqa, "nq": _nq, "openkp": _openkp, "wikihop": _wikihop}


def copies(dataset, raw_examples, seed=0):
    """An iterator over copies without end, one of each example in turn.

    Args:
        dataset: str. A key of `MAKERS`.
        raw_examples: list of dict, not empty. HotpotQA's in the authors' layout, Natural
            Questions' in the simplified one, OpenKP's with labels.
        seed: int. With the number of a copy it decides its words.
    Raises:
        ValueError: naming example and field, if one is of another layout; if there is none.
    """
    makers = [_maker(dataset, number, raw) for number, raw in enumerate(raw_examples)]
    if not makers:
        raise ValueError("there is no example to copy")
    return (
        makers[number % len(makers)](random.Random(f"{seed} {number}"), number)
        for number in itertools.count()
    )


def _maker(dataset, number, raw):
    raw_files.check_readable(raw)
    json_fields.require_object(raw)
    return MAKERS[dataset](json_fields.Fields(number, raw))


def write(dataset, source, path, num_bytes, seed=0):
    """Writes a raw file of copies, streamed, until it has at least so many bytes.

    Args:
        dataset, seed: as of `copies`.
        source: str. A raw file of the data set.
        path: str. The new file, which gets its name when it is complete.
        num_bytes: int.
    Returns:
        int. The number of examples.
    Raises:
        ValueError: naming the source, and as `copies`.
    """
    raw_examples = list(raw_files.read_json_values(source))
    try:
        examples = copies(dataset, raw_examples, seed)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    start, between, end = ("", "\n", "\n") if dataset in _JSON_LINES else ("[\n", ",\n", "\n]\n")
    size = count = 0
    with atomic_files.new_file(path) as name, open(name, "w", encoding="utf-8") as file:
        while not count or size < num_bytes:
            size += file.write(between if count else start)
            size += file.write(json.dumps(next(examples)))  # ASCII: characters are bytes.
            count += 1
        file.write(end)
    return count
