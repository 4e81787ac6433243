"""From model outputs to answers, over all windows of all documents of a question.

Strings that are equal once normalized are one answer (`answers.normalize_answer`). That of a
question is, by `--answer_score`,
- `best`: that of the span with the highest sum of its two logits, though in training each window
  has a softmax of its own.
- `sum`: the one with the highest sum of its spans' probabilities (start times end, each within its
  window), so that it helps to be found in several places or documents.
"""

import collections
import dataclasses

import numpy as np

from etcmodel.finetuning import spans, text_of

from .answers import normalize_answer
from .raw_data import document_key

__all__ = ["generate_predictions"]

_NUM_TOLD = 5  # Answers in a prediction's details.


@dataclasses.dataclass
class _Answer:
    """What was found of one answer: its best span, where that is, and the sum of all."""

    best: spans.Span
    document: str
    total: float = 0.0

    def score(self, config):
        return self.total if config.answer_score == "sum" else self.best.logit


def generate_predictions(outputs, config):
    """Decodes the outputs of a model.

    Args:
        outputs: iterable of dicts, one a window, in any order: `start`, `end`: float [L]; and the
            features of `examples.make_features` for other than training.
        config: `TriviaQaDecodingOptions`.
    Returns:
        dict of `TriviaQaExample.keys` to dicts: `answer`, `score` and `document` (the name of its
        best span's file), and `others`, the next best answers with their scores.
    """
    found = collections.defaultdict(dict)
    for output in outputs:
        question, document = text_of(output["question_id"]), text_of(output["document"])
        answers = found[document_key(question, document) if config.by_document else question]
        for span in _spans(output, config):
            name = normalize_answer(span.text)
            answer = answers.setdefault(name, _Answer(span, document))
            answer.total += span.probability
            if span.logit > answer.best.logit:
                answer.best, answer.document = span, document
    return {key: _told(answers.values(), config) for key, answers in found.items()}


def _spans(output, config):
    names = ("start", "end", "token_starts", "token_ends")
    start, end, *places = (np.ravel(output[name]) for name in names)
    text, length = text_of(output["text"]), config.max_answer_length
    return spans.best_spans(start, end, places, text, max_length=length)


def _told(answers, config):
    ranked = sorted(answers, key=lambda x: -x.score(config))[:_NUM_TOLD]
    told = [{"answer": x.best.text, "score": x.score(config)} for x in ranked]
    return {**told[0], "document": ranked[0].document, "others": told[1:]}
