"""Metrics shared by tasks, on NumPy arrays.

The expected calibration error is that of Guo et al. 2017 (arXiv:1706.04599), section 2: the mean
difference between confidence and accuracy in bins of equal width.
"""

import collections
import re
import string

import numpy as np


def sigmoid(logits):
    """Sigmoid of logits: float64, of the same shape."""
    return np.exp(-np.logaddexp(0, -np.asarray(logits, np.float64)))


def softmax(logits):
    """Softmax of logits over the last axis: float64, of the same shape."""
    logits = np.asarray(logits, np.float64)
    exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def f1_scores(predicted, given):
    """Micro F1 over all decisions, and macro F1 over the labels that are predicted or given.

    Args:
        predicted, given: bool [num_examples, num_labels].
    Returns:
        (micro, macro): float, 0 if no label is predicted or given.
    """
    right, total = (predicted & given).sum(), predicted.sum() + given.sum()
    if not total:
        return 0.0, 0.0
    occurs = (predicted | given).any(axis=0)
    return float(2 * right / total), float(np.mean(scores_by_label(predicted, given)[2][occurs]))


def scores_by_label(predicted, given):
    """Precision, recall and F1 of each label: float64 [3, num_labels], 0 if undefined.

    Args:
        predicted, given: as in `f1_scores`.
    """
    right, told, there = (x.sum(axis=0) for x in (predicted & given, predicted, given))
    parts = (told, there, (told + there) / 2)
    return np.stack([right / np.maximum(part, 1) for part in parts])


def expected_calibration_error(confidences, is_right, num_bins=15):
    """Expected calibration error; a bin includes its upper end, not its lower one.

    Args:
        confidences: float [num_examples], above 0 and at most 1.
        is_right: bool [num_examples].
        num_bins: int.
    """
    edges = np.linspace(0, 1, num_bins + 1)
    bins = np.clip(np.searchsorted(edges, confidences, side="left") - 1, 0, num_bins - 1)
    gaps = np.bincount(bins, confidences - is_right, num_bins)
    return float(np.abs(gaps).sum() / len(confidences))


def pearson(x, y):
    """Pearson's correlation (of `ranks`, Spearman's): float; 0 if a side is constant.

    Args:
        x, y: float [num_examples].
    """
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    x, y = (np.asarray(side, np.float64) - np.mean(side) for side in (x, y))
    x, y = (side / np.abs(side).max() for side in (x, y))  # Squares of tiny values would be 0.
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def ranks(values):
    """Ranks from 1; equal values share the mean of their ranks: float64 [num_examples]."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text):
    """Lower-cases `text` and drops ASCII punctuation, articles and superfluous white space.

    Source: Rajpurkar et al. 2016 (arXiv:1606.05250), section 6.1, as their script and that of
        HotpotQA do it.
    """
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def word_overlap(predicted, given):
    """F1, precision and recall of an answer's words: three floats, 0 without a common word.

    Source: Rajpurkar et al. 2016 (arXiv:1606.05250), section 6.1. A repeated word counts as often
        as it occurs in both answers.

    Args:
        predicted, given: list of str.
    """
    num_common = (collections.Counter(predicted) & collections.Counter(given)).total()
    if not num_common:
        return 0.0, 0.0, 0.0
    precision, recall = num_common / len(predicted), num_common / len(given)
    return 2 * precision * recall / (precision + recall), precision, recall


def answer_overlap(prediction, answer):
    """Overlap of the words of two answers as HotpotQA's script has it: (F1, precision, recall).

    `yes`, `no` and `noanswer` only match themselves.
    """
    prediction, answer = normalize_answer(prediction), normalize_answer(answer)
    if prediction != answer and {prediction, answer} & {"yes", "no", "noanswer"}:
        return 0.0, 0.0, 0.0
    return word_overlap(prediction.split(), answer.split())
