"""The report on OpenKP: phrases, and the first positions of the correct ones.

The baseline predicts the most frequent words of a page with at least four letters.
"""

import collections

from etcmodel.reports import results

from . import examples, metrics, phrases

__all__ = ["read_results"]

_DEPTH = 5
_LEAST_LETTERS = 4


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, of other pages, or a page has no labels.
    """
    rows = results.read_rows(given.predictions_file, {"url": str, "KeyPhrases": list})
    predictions = {row["url"]: [" ".join(words) for words in row["KeyPhrases"]] for row in rows}
    pages = [metrics.TextExample.of(x) for x in examples.read_examples(given.eval_gold)]
    urls = [page.url for page in pages]
    results.check_answers(predictions, urls, given.predictions_file, list)
    frequent = {page.url: _frequent_words(page) for page in pages}
    return results.Results(
        metrics=metrics.metrics(pages, predictions, given.removed),
        best_metric="f1@3",
        items=tuple(_item(page, predictions.get(page.url, [])) for page in pages),
        noun="pages",
        baselines={"the most frequent words": metrics.metrics(pages, frequent, given.removed)},
        score_name="F1 of the top 3 phrases",
        filter_name="Only pages without a correct phrase in the top 3",
        places=results.Places(
            f"Fraction found in the top {_DEPTH}",
            "a correct phrase",
            tuple(point for page in pages for point in _points(page, predictions)),
        ),
    )


def _item(page, predicted):
    scores = metrics.scores(page.key_phrases, predicted)
    gold = sorted(page.key_phrases)
    return results.Item(
        key=page.url,
        question=page.url,
        prediction=", ".join(predicted[:_DEPTH]),
        gold=", ".join(gold),
        is_right=scores.f1[2] > 0,
        score=scores.f1[2],
        passages=(results.plain_passage(page.text),),
        marked_gold=tuple(gold),
        marked_predicted=tuple(predicted[:_DEPTH]),
    )


def _points(page, predictions):
    """For each true phrase on the page: its first position, and whether it was found."""
    words = phrases.normalized_words(page.words)
    found = {phrase.lower() for phrase in predictions.get(page.url, [])[:_DEPTH]}
    for phrase in sorted(page.key_phrases):
        place = phrases.find(phrases.split(phrase), words)
        if place is not None:
            yield place / len(words), float(phrase in found)


def _frequent_words(page):
    words = (word for word in phrases.normalized_words(page.words) if len(word) >= _LEAST_LETTERS)
    return [word for word, _ in collections.Counter(words).most_common(_DEPTH)]
