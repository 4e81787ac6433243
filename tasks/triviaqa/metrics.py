"""Decodes the model's outputs to answers, and measures them."""

import collections
import dataclasses
import math

from etcmodel.finetuning import metrics as metrics_lib
from etcmodel.finetuning import spans, text_of
from etcmodel.preprocessing import raw_files

from .examples import document_key, normalize_answer

__all__ = ["answer_score", "answers_of_window", "combine", "metrics"]

# Decodes model outputs to answers, over all windows of all documents of a question.
#
# Strings that are equal after normalization are one answer. The answer of a question is, depending
# on `--answer_score`,
# - `best`: that of the span with the highest sum of its two logits;
# - `sum`: the one with the highest sum of its spans' probabilities, start times end in the window.
#   A span that is in several windows counts once, where it is most probable.


_NUM_TOLD = 5  # Number of answers in a prediction's details.


@dataclasses.dataclass
class _Answer:
    """The spans of one answer: the best one, its place, and the probabilities of all."""

    best: spans.Span
    document: str
    probabilities: dict = dataclasses.field(default_factory=dict)  # Keys: document and characters.

    def add(self, place, probability):
        self.probabilities[place] = max(self.probabilities.get(place, 0.0), probability)

    def score(self, config):
        is_sum = config.answer_score == "sum"
        return math.fsum(self.probabilities.values()) if is_sum else self.best.logit


def answers_of_window(output, config):
    """The best answers in a window.

    Args:
        output: dict: `start`, `end`: float [L]; and the features of `features.make_features` for
            other than training.
        config: `TriviaQaDecodingOptions`.
    Returns:
        dict for JSON: `question` and `document`, str, and `spans`, which are `spans.Span`s with
        characters of the whole text of the document, as lists.
    """
    found = spans.spans_of_window(output, config.max_answer_length)
    return {
        "question": text_of(output["question_id"]),
        "document": text_of(output["document"]),
        "spans": [list(span) for span in found],
    }


def combine(windows, config):
    """The answers of questions.

    Args:
        windows: iterable of results of `answers_of_window`, in any order.
        config: `TriviaQaDecodingOptions`.
    Returns:
        dict of `TriviaQaExample.keys` to dicts: `answer`, `score` and `document` (the name of its
        best span's file), and `others`, the next best answers with their scores.
    """
    found = collections.defaultdict(dict)
    for window in windows:
        key, document = window["question"], window["document"]
        key = document_key(key, document) if config.by_document else key
        answers = found[key]
        for span in map(spans.Span._make, window["spans"]):
            answer = answers.setdefault(normalize_answer(span.text), _Answer(span, document))
            answer.add((document, span.start, span.end), span.probability)
            if span.logit > answer.best.logit:
                answer.best, answer.document = span, document
        if config.answer_score == "best":  # The others cannot win anymore.
            found[key] = _ranked(answers, config)
    return {key: _told(_ranked(answers, config), config) for key, answers in found.items()}


def _ranked(answers, config):
    """The best answers; answers that are empty after normalization come last."""
    ranked = sorted(answers.items(), key=lambda x: (not x[0], -x[1].score(config), x[0]))
    return dict(ranked[:_NUM_TOLD])


def _told(answers, config):
    told = [{"answer": x.best.text, "score": x.score(config)} for x in answers.values()]
    return {**told[0], "document": next(iter(answers.values())).document, "others": told[1:]}


# TriviaQA's official metrics: exact match and F1, the best over all aliases of the answer.
#
# Source: Joshi et al. 2017 (arXiv:1705.03551), section 5.3, and the official script
# `triviaqa_evaluation.py`, whose numbers these are (in [0, 1], not percent).


def answer_score(prediction, answers):
    """(exact match, F1) of a predicted answer: floats in [0, 1].

    Args:
        prediction: str.
        answers: sequence of str. All correct answers; not empty.
    """
    predicted = normalize_answer(prediction)
    right = [normalize_answer(answer) for answer in answers]
    overlaps = (metrics_lib.word_overlap(predicted.split(), x.split()) for x in right)
    return float(predicted in right), max(f1 for f1, _, _ in overlaps)


def metrics(gold, predictions, by_document=False):
    """The mean scores over all questions; one without a prediction scores 0.

    Args:
        gold: iterable of `TriviaQaExample` with answers.
        predictions: dict of `TriviaQaExample.keys` to the answers, str.
        by_document: bool. Score each pair of question and document, as the script does for the web.
    Returns:
        dict of float: `em`, `f1`, and `answered`, the fraction with a prediction; and the same with
        the prefix `verified_`, for verified questions (and documents) only, if there are any.
    Raises:
        ValueError: if there is no question, one has no answer, or two have the same id.
    """
    scores, verified = [], []
    for example in raw_files.by_id(gold).values():
        if example.answers is None:
            raise ValueError(
                f"example {example.example_id!r}: field `Answer` is missing, and evaluation needs "
                "it. Give a gold file with answers."
            )
        for key, is_verified in example.keys(by_document).items():
            told = predictions.get(key)
            score = (0.0,) * 3 if told is None else (*answer_score(told, example.answers), 1.0)
            scores.append(score)
            verified += [score] * is_verified
    if not scores:
        raise ValueError("There is no gold example to evaluate on.")
    named = {"": scores, "verified_": verified} if verified else {"": scores}
    return {
        f"{part}{name}": sum(column) / len(rows)
        for part, rows in named.items()
        for name, column in zip(("em", "f1", "answered"), zip(*rows, strict=True), strict=True)
    }
