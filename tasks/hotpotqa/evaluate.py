"""HotpotQA's official metrics: answer, supporting facts, and both jointly.

Source: Yang et al. 2018 (arXiv:1809.09600), section 5.2, and the official script
`hotpot_evaluate_v1.py`, which gives the same numbers.
"""

import collections
import re
import string
from typing import NamedTuple

from etcmodel.finetuning import metrics as metrics_lib

__all__ = [
    "Score",
    "answer_score",
    "exact_match_counts",
    "exact_match_score",
    "f1_score",
    "metrics",
    "normalize_answer",
    "supporting_facts_score",
]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED_ANSWERS = ("yes", "no", "noanswer")
_CLOSED_KINDS = {"yes": "Y", "no": "N"}


class Score(NamedTuple):
    """Exact match, F1, precision and recall, each in [0, 1]."""

    em: float
    f1: float
    prec: float
    recall: float


def normalize_answer(text):
    """Lower-cases `text` and drops ASCII punctuation, articles and superfluous white space."""
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def f1_score(prediction, ground_truth):
    """Overlap of the words of two answers, as (F1, precision, recall).

    `yes`, `no` and `noanswer` only match themselves.
    """
    prediction, ground_truth = normalize_answer(prediction), normalize_answer(ground_truth)
    if prediction != ground_truth and {prediction, ground_truth} & set(_CLOSED_ANSWERS):
        return 0.0, 0.0, 0.0
    return metrics_lib.word_overlap(prediction.split(), ground_truth.split())


def exact_match_score(prediction, ground_truth):
    """Whether two answers are equal once normalized."""
    return normalize_answer(prediction) == normalize_answer(ground_truth)


def answer_score(prediction, ground_truth):
    """The `Score` of one answer."""
    exact = float(exact_match_score(prediction, ground_truth))
    return Score(exact, *f1_score(prediction, ground_truth))


def supporting_facts_score(prediction, gold):
    """The `Score` of one example's supporting facts, sequences of (title, sentence index)."""
    predicted, true = ({tuple(fact) for fact in facts} for facts in (prediction, gold))
    num_common = len(predicted & true)
    precision = num_common / len(predicted) if predicted else 0.0
    recall = num_common / len(true) if true else 0.0
    return Score(float(predicted == true), _f1(precision, recall), precision, recall)


def metrics(gold, prediction):
    """Averages the scores over the gold examples.

    Args:
        gold: iterable of `HotpotQAExample` with labels.
        prediction: {"answer": {id: str}, "sp": {id: [[title, sentence index], …]}}. An example
            without an answer, without facts, or without either scores 0 there and jointly.

    Returns:
        dict of str to float in [0, 1]: em, f1, prec, recall; the same with `sp_` and `joint_`.

    Raises:
        ValueError: if there is no gold example, or one without labels.
    """
    totals = collections.Counter()
    count = 0
    for example in gold:
        count += 1
        for prefix, score in _scores(example, prediction).items():
            for name, value in score._asdict().items():
                totals[prefix + name] += value
    if not count:
        raise ValueError("There is no gold example to evaluate on.")
    names = [prefix + name for prefix in ("", "sp_", "joint_") for name in Score._fields]
    return {name: totals[name] / count for name in names}


def _scores(example, prediction):
    _check_labels(example)
    scores = {}
    if (answer := prediction["answer"].get(example.example_id)) is not None:
        scores[""] = answer_score(answer, example.answer)
    if (facts := prediction["sp"].get(example.example_id)) is not None:
        scores["sp_"] = supporting_facts_score(facts, example.supporting_facts)
    if len(scores) == 2:
        scores["joint_"] = _joint(scores[""], scores["sp_"])
    return scores


def _joint(answer, facts):
    precision, recall = answer.prec * facts.prec, answer.recall * facts.recall
    return Score(answer.em * facts.em, _f1(precision, recall), precision, recall)


def _f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def exact_match_counts(gold, prediction):
    """Counts the answers by true and predicted kind.

    The kinds are `Y` (yes), `N` (no) and `A` (any other answer, once normalized even an empty one).
    For a predicted answer, `A` means the correct one if the answer is a span, and any text if it is
    yes or no; other kinds are `B` (a wrong span where the answer is a span) and `E` (empty).

    Args:
        gold, prediction: see `metrics`. Examples without a predicted answer count as empty.

    Returns:
        dict from `counts/<true>_<predicted>` to a number, and from `percentages/<true>_<predicted>`
        to its fraction of the examples of this true kind, in [0, 1].

    Raises:
        ValueError: if a gold example has no labels.
    """
    counts = collections.Counter()
    totals = collections.Counter()
    for example in gold:
        _check_labels(example)
        answer = prediction["answer"].get(example.example_id) or ""
        true_kind, kind = _kinds(normalize_answer(example.answer), normalize_answer(answer))
        counts[f"{true_kind}_{kind}"] += 1.0
        totals[true_kind] += 1
    named = {f"counts/{pair}": count for pair, count in sorted(counts.items())}
    shares = {f"percentages/{pair}": counts[pair] / totals[pair[0]] for pair in sorted(counts)}
    return named | shares


def _kinds(answer, predicted):
    """The true and the predicted kind; both answers are normalized."""
    true_kind = _CLOSED_KINDS.get(answer, "A")
    if predicted in _CLOSED_KINDS:
        return true_kind, _CLOSED_KINDS[predicted]
    if true_kind != "A":
        return true_kind, "A" if predicted else "E"
    if predicted == answer:
        return true_kind, "A"
    return true_kind, "B" if predicted else "E"


def _check_labels(example):
    for name in ("answer", "supporting_facts"):
        if getattr(example, name) is None:
            raise ValueError(
                f"example {example.example_id!r}: field `{name}` is missing, and evaluation needs "
                "it. Give a gold file with labels."
            )
