"""Decodes the model's outputs to key phrases, and measures them."""

import dataclasses
import json
import logging
from typing import NamedTuple

from . import phrases

__all__ = [
    "DEPTHS",
    "NAMES",
    "Scores",
    "TextExample",
    "decode_page",
    "key_phrases",
    "metrics",
    "predictions",
    "scores",
    "submission_line",
    "words_by_url",
]

# Decodes model outputs to key phrases and the official submission format.
#
# Differences from the release (`release_compatible=True` reproduces it): an n-gram that runs past
# the end of the page is not a phrase (there: it is cut).


def key_phrases(positions, words, max_predictions, *, release_compatible=False):
    """The best phrases of a page, without duplicates, ignoring case.

    Args:
        positions: iterable of (first word, number of words, logit) of n-grams.
        words: sequence of str. The words of the page.
        max_predictions: int.
        release_compatible: bool. Reproduce the bug of the release.

    Returns:
        list of str, in lower case, best first.
    """
    found = {}
    for start, length, _ in sorted(positions, key=lambda position: -position[2]):
        if length < 1 or start >= len(words):
            continue
        if start + length > len(words) and not release_compatible:
            continue
        phrase = phrases.normalized(words[start : start + length])
        if phrase:  # Skips an empty word, as between two blanks.
            found.setdefault(phrase)
        if len(found) >= max_predictions:
            break
    return list(found)


def submission_line(url, predicted):
    """A line of the official submission: the page and its phrases, best first."""
    return json.dumps({"url": url, "KeyPhrases": [[phrase] for phrase in predicted]})


def decode_page(output, words, max_predictions, *, release_compatible=False):
    """The best phrases of a page from the outputs of `OpenKpModel`.

    Args:
        output: dict of NumPy arrays [k]: `top_start_idx`, `top_phrase_len` and `top_logits`.
        words, max_predictions, release_compatible: see `key_phrases`.
    """
    positions = zip(
        output["top_start_idx"].tolist(),
        output["top_phrase_len"].tolist(),
        output["top_logits"].tolist(),
        strict=True,
    )
    return key_phrases(positions, words, max_predictions, release_compatible=release_compatible)


def words_by_url(pages):
    """The words of pages: dict from URL to list of str.

    Records identify their page by its URL: of pages with the same URL and different words, the last
    is used, with a warning.

    Args:
        pages: iterable of objects with `url` and `words`.
    """
    found, mixed = {}, {}
    for page in pages:
        words = list(page.words)
        if found.get(page.url, words) != words:
            mixed.setdefault(page.url)
        found[page.url] = words
    if mixed:
        logging.warning(
            "%s URLs have several pages with different texts, of which the last counts, such as "
            "%r. Clean the raw file with input_validate_and_dedup, and make the records from the "
            "clean one.",
            len(mixed),
            next(iter(mixed)),
        )
    return found


def predictions(outputs, words, max_predictions, *, release_compatible=False):
    """The best phrases of many pages.

    Args:
        outputs: iterable of dict, as in `decode_page`, with int `url_code_points` [U].
        words: dict from URL to sequence of str (`words_by_url`). Outputs for other pages are
            ignored.
        max_predictions, release_compatible: see `key_phrases`.

    Returns:
        dict from URL to list of str; [] for a page without an output.

    Raises:
        ValueError: if there are outputs, but none matches a page.
    """
    found = {}
    url = None
    for output in outputs:
        url = _url_of(output["url_code_points"])
        if url in words:
            found[url] = decode_page(
                output, words[url], max_predictions, release_compatible=release_compatible
            )
    if url is not None and not found:
        raise ValueError(
            f"None of the records is of one of the {len(words)} pages of the raw file; the "
            f"last has the URL {url!r}. Were they made from another file?"
        )
    return {url: found.get(url, []) for url in words}


def _url_of(code_points):
    return "".join(chr(code_point) for code_point in code_points if code_point >= 0)


# OpenKP's official metrics: precision, recall and F1 of the best 1, 3 and 5 phrases.
#
# Source: Xiong et al. 2019 (arXiv:1911.02671), section 6, and the official script, whose numbers
# these are.


DEPTHS = (1, 3, 5)
_MAX_DEPTH = max(DEPTHS)


class Scores(NamedTuple):
    """Lists of float in [0, 1], by depth from 1."""

    precision: list
    recall: list
    f1: list


NAMES = tuple(f"{name}@{depth}" for name in Scores._fields for depth in DEPTHS)


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
    totals = dict.fromkeys(NAMES, 0.0)
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
