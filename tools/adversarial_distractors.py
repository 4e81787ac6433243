"""Gives HotpotQA's questions distractors that are like them: an ADV-HotpotQA of one's own.

Gupta and Berant (2020, appendix A.3) take, for each question, the 50 introductory paragraphs of
Wikipedia that are most similar to it by TF-IDF, and of these the 8 in which a reader of single
paragraphs most believes to find an answer. Here both are given: the paragraphs as files in
HotpotQA's form, and the reader as an export of SQuAD's program with `version_2_with_negative`.
Without a reader the most similar paragraphs are taken.

  etcmodel prepare hotpotqa --input_file=hotpot_dev_distractor_v1.json \
    --paragraphs='hotpot_*.json' --reader_export_dir=runs/squad/export \
    --output_file=adversarial_dev.json
"""

import collections
import dataclasses
import itertools
import json
import math
import random
import re

import numpy as np

from etcmodel import atomic_files
from etcmodel.options import Options, option, run_program
from etcmodel.preprocessing import hotpotqa_files

__all__ = ["AdversarialOptions", "TfIdf", "adversarial", "main"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdversarialOptions(Options):
    """The options of the program."""

    input_file: str = option("", "HotpotQA's JSON file, packed or not.", is_needed=True)
    output_file: str = option("", "File to write the same questions to.", is_needed=True)
    paragraphs: str | None = option(
        None,
        "Files in HotpotQA's form whose paragraphs may be distractors; wildcards allowed. None: "
        "those of --input_file.",
    )
    num_distractors: int = option(8, "Number of distractors of a question.", lower_bound=1)
    num_retrieved: int = option(
        50,
        "Number of the most similar paragraphs of which --reader_export_dir chooses.",
        lower_bound=1,
    )
    reader_export_dir: str | None = option(
        None,
        "Export of SQuAD's program with version_2_with_negative, which chooses the paragraphs in "
        "which it most believes to find an answer. None: the most similar ones.",
    )
    random_seed: int = option(0, "Seed of the order of the paragraphs.")


class TfIdf:
    """The similarity of texts by their words: the cosine of (1 + log count) · log(N / documents).

    Args:
        texts: list of str.

    >>> from etcmodel.tools.adversarial_distractors import TfIdf
    >>> TfIdf(["A mill.", "An old mill.", "A lake."]).nearest("Which old mill?")
    [1, 0, 2]
    """

    def __init__(self, texts):
        self._num_texts = len(texts)
        postings = collections.defaultdict(list)
        for number, text in enumerate(texts):
            for word, count in _counts(text).items():
                postings[word].append((number, 1 + math.log(count)))
        norms = np.zeros(len(texts))
        self._postings = {}
        for word, found in postings.items():
            numbers, weights = np.array([x for x, _ in found]), np.array([x for _, x in found])
            idf = math.log(len(texts) / len(found))
            norms[numbers] += (idf * weights) ** 2
            self._postings[word] = numbers, idf * weights, idf
        self._norms = np.sqrt(np.maximum(norms, 1e-12))

    def nearest(self, query):
        """Numbers of the texts, the most similar first, of equal ones the first: list of int."""
        scores = np.zeros(self._num_texts)
        for word, count in _counts(query).items():
            if word in self._postings:
                numbers, weights, idf = self._postings[word]
                scores[numbers] += (1 + math.log(count)) * idf * weights
        return np.argsort(-scores / self._norms, kind="stable").tolist()


def _counts(text):
    return collections.Counter(re.findall(r"\w+", text.lower()))


def adversarial(example, paragraphs, numbers, options, no_answer=None):
    """The example with other distractors.

    Args:
        example: `hotpotqa_files.HotpotQAExample` with supporting facts.
        paragraphs: list of `hotpotqa_files.Paragraph`.
        numbers: iterable of the indices of these, the most similar first.
        options: `AdversarialOptions`.
        no_answer: function of a question and a list of texts to a list of float, the higher the
            less a text has an answer. None: similarity decides.
    Returns:
        `HotpotQAExample`: the paragraphs with supporting facts and `num_distractors` others, each
        of a title of its own, in random order that depends on the seed and the id.
    Raises:
        ValueError: if there are no supporting facts, or too few other paragraphs.
    """
    titles = {fact.title for fact in example.supporting_facts or ()}
    gold = [x for x in example.paragraphs if x.title in titles]
    if not gold:
        problem = "must have a paragraph with a supporting fact"
        raise ValueError(f"example {example.example_id!r}: field `context` {problem}.")
    wanted, others = options.num_distractors, {}  # By title, of which the first counts.
    most = max(wanted, options.num_retrieved if no_answer else 0)
    for paragraph in map(paragraphs.__getitem__, numbers):
        if paragraph.title not in titles:
            others.setdefault(paragraph.title, paragraph)
        if len(others) == most:
            break
    found = [*others.values()]
    if len(found) < wanted:
        raise ValueError(
            f"example {example.example_id!r}: there are only {len(found)} paragraphs of other "
            f"titles. Give more in --paragraphs, or fewer --num_distractors than {wanted}."
        )
    if no_answer:
        scores = no_answer(example.question, [_text(x) for x in found])
        found = [found[x] for x in np.argsort(scores, kind="stable")]
    mixed = [*gold, *found[:wanted]]
    random.Random(f"{options.random_seed} {example.example_id}").shuffle(mixed)
    return dataclasses.replace(example, paragraphs=tuple(mixed))


def _text(paragraph):
    return f"{paragraph.title} {''.join(paragraph.sentences)}"


def _raw(example):
    """An example in the authors' layout."""
    raw = {"_id": example.example_id, "question": example.question, "answer": example.answer}
    raw["supporting_facts"] = [list(fact) for fact in example.supporting_facts]
    raw["context"] = [[x.title, list(x.sentences)] for x in example.paragraphs]
    return {**raw, "type": example.type, "level": example.level}


def _reader(export_dir):
    """`no_answer` of `adversarial`, by an export of SQuAD's program."""
    from etcmodel.tasks.squad.predict import SquadPredictor

    predictor = SquadPredictor(export_dir)

    def no_answer(question, texts):
        rows = [{"id": str(x), "question": question, "context": y} for x, y in enumerate(texts)]
        told = predictor.predict(rows)
        if any("null_odds" not in x for x in told.values()):
            raise ValueError(
                f"--reader_export_dir: {export_dir!r} knows no texts without an answer. Give an "
                "export that was trained with --version_2_with_negative."
            )
        return [told[row["id"]]["null_odds"] for row in rows]

    return no_answer


def main(options):
    """Writes the questions of `AdversarialOptions` with their new paragraphs."""
    from etcmodel import preprocessing  # Imports TensorFlow, for which --help need not wait.

    files = preprocessing.input_files(options.paragraphs or options.input_file)
    read = itertools.chain.from_iterable(map(hotpotqa_files.read_examples, files))
    seen = dict.fromkeys(x for example in read for x in example.paragraphs)
    paragraphs = [x for x in seen if "".join(x.sentences).strip()]
    index = TfIdf([_text(x) for x in paragraphs])
    no_answer = _reader(options.reader_export_dir) if options.reader_export_dir else None
    num_written = 0

    def lines():
        nonlocal num_written
        for example in hotpotqa_files.read_examples(options.input_file):
            numbers = index.nearest(example.question)
            made = adversarial(example, paragraphs, numbers, options, no_answer)
            yield ",\n" if num_written else "[\n"
            yield json.dumps(_raw(made), ensure_ascii=False)
            num_written += 1
        yield "\n]\n"

    atomic_files.write_text(options.output_file, lines())
    chosen = f"{options.num_distractors} of {len(paragraphs)} paragraphs each"
    print(f"{num_written} questions with {chosen}: {options.output_file}")


if __name__ == "__main__":
    run_program(AdversarialOptions, main)
