"""Decodes model outputs to key phrases and the official submission format.

Differences from the release (`release_compatible=True` reproduces it): an n-gram that runs past the
end of the page is not a phrase (there: it is cut).
"""

import json
import logging

from . import phrases

__all__ = ["decode_page", "key_phrases", "predictions", "submission_line", "words_by_url"]


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
