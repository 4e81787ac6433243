"""ROUGE of summaries (Lin 2004), with the package `rouge-score` and Porter's stemmer."""

import numpy as np

from etcmodel import extras
from etcmodel.text.sentence_splitting import sentence_splitter

__all__ = ["METRICS", "rouge", "sentence_lines"]

METRICS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def sentence_lines(text):
    """A text with a line for each sentence, as `rougeLsum` needs it.

    If it has several lines, they count as its sentences; else it is split at white space after
    . ! or ?.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return "\n".join(lines if len(lines) > 1 else sentence_splitter("simple")(text))


def rouge(pairs):
    """Mean F-measures.

    Args:
        pairs: iterable of (summary, reference): str.
    Returns:
        dict of float in [0, 1], of the names in `METRICS`.
    Raises:
        ValueError: if there are no pairs.
    """
    with extras.needed("train"):
        from rouge_score import rouge_scorer, tokenizers

    stemming = tokenizers.DefaultTokenizer(use_stemmer=True)
    scorer = rouge_scorer.RougeScorer(list(METRICS), tokenizer=stemming)
    rows = []
    for summary, reference in pairs:
        scores = scorer.score(sentence_lines(reference), sentence_lines(summary))
        rows.append([scores[name].fmeasure for name in METRICS])
    if not rows:
        raise ValueError("There is no summary to evaluate.")
    return dict(zip(METRICS, np.mean(rows, axis=0).tolist(), strict=True))
