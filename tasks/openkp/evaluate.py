"""OpenKP's official metrics: precision, recall and F1 of the best 1, 3 and 5 phrases.

Source: Xiong et al. 2019 (arXiv:1911.02671), section 6, and the official script, whose numbers
these are.
"""

import dataclasses
from typing import NamedTuple

from . import phrases

__all__ = ["DEPTHS", "Scores", "TextExample", "metrics", "scores"]

DEPTHS = (1, 3, 5)
_MAX_DEPTH = max(DEPTHS)


class Scores(NamedTuple):
    """Lists of float in [0, 1], by depth from 1."""

    precision: list
    recall: list
    f1: list


@dataclasses.dataclass(frozen=True)
class TextExample:
    """The parts of a page that decoding and evaluation need.

    Attributes:
        url: str.
        text: str.
        key_phrases: frozenset of str, lower-case, or None for no labels.
    """

    url: str
    text: str
    key_phrases: frozenset | None

    @classmethod
    def of(cls, example):
        """The text of an `OpenKpExample`."""
        gold = example.key_phrases
        if gold is not None:
            gold = frozenset(map(phrases.normalized, gold))
        return cls(example.url, example.text, gold)

    @property
    def words(self):
        """The words that the positions of phrases count: list of str."""
        return phrases.split(self.text)

    def to_json(self):
        """The page as in the dataset, without its VDOM: a JSON-like dict."""
        labels = {}
        if self.key_phrases is not None:
            labels = {"KeyPhrases": [[phrase] for phrase in sorted(self.key_phrases)]}
        return {"url": self.url, "text": self.text, **labels}


def scores(gold, predicted, max_depth=_MAX_DEPTH):
    """Compares the predicted phrases of a page with the true ones.

    Args:
        gold: set of str, lower-case; not empty.
        predicted: list of str, best first; case is ignored. Empty and repeated phrases are dropped,
            and the others move up.
        max_depth: int.

    Returns:
        `Scores` of the first 1, 2, … `max_depth` phrases. A missing prediction counts as wrong.

    Raises:
        ValueError: if there is no true phrase.
    """
    if not gold:
        raise ValueError("A page without key phrases cannot be scored.")
    result = Scores([], [], [])
    ranked = [phrase for phrase in dict.fromkeys(map(str.lower, predicted)) if phrase]
    num_right = 0
    for depth in range(1, max_depth + 1):
        num_right += depth <= len(ranked) and ranked[depth - 1] in gold
        precision, recall = num_right / depth, num_right / len(gold)
        result.precision.append(precision)
        result.recall.append(recall)
        total = precision + recall
        result.f1.append(2 * precision * recall / total if total else 0.0)
    return result


def metrics(gold, predictions, removed=0.0):
    """Averages the scores over the pages.

    Args:
        gold: iterable of `TextExample` with labels.
        predictions: dict of URL to list of str, the best first. A page without any scores 0.
        removed: float. Fraction of all pages that are missing from `gold` and score 0.

    Returns:
        dict of `precision@1`, `precision@3`, …, `recall@1`, …, `f1@5` to float in [0, 1].

    Raises:
        ValueError: if there is no page, or one without labels.
    """
    totals = {f"{name}@{depth}": 0.0 for name in Scores._fields for depth in DEPTHS}
    count = 0
    for example in gold:
        if not example.key_phrases:
            raise ValueError(f"page {example.url!r} has no key phrases to evaluate on")
        count += 1
        page = scores(example.key_phrases, predictions.get(example.url, []))
        for name, values in page._asdict().items():
            for depth in DEPTHS:
                totals[f"{name}@{depth}"] += values[depth - 1]
    if not count:
        raise ValueError("There is no page to evaluate on.")
    return {name: total / count * (1 - removed) for name, total in totals.items()}
