"""The report on coreference: the clusters that were found beside the actual ones.

The baseline is given the actual mentions: those of equal words are of one thing.
"""

import collections
import itertools

from etcmodel.reports import results

from . import examples, metrics

__all__ = ["read_results"]


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, or no prediction matches.
    """
    predictions = results.read_object(given.predictions_file)
    gold = list(examples.example_reader()(given.eval_gold))
    keys = [document.example_id for document in gold]
    results.check_answers(predictions, keys, given.predictions_file, dict)
    pairs = [
        (document, _told(document, predictions[document.example_id], given.predictions_file))
        for document in gold
        if document.example_id in predictions
    ]
    by_words = metrics.scores((document.clusters, _by_words(document)) for document, _ in pairs)
    return results.Results(
        metrics=metrics.scores((document.clusters, told) for document, told in pairs),
        best_metric="f1",
        items=tuple(_item(document, told) for document, told in pairs),
        noun="documents",
        baselines={"the actual mentions, by equal words": by_words},
        score_name="CoNLL F1",
    )


def _by_words(document):
    """The actual mentions of a document, those of equal words in one cluster."""
    by_words = collections.defaultdict(list)
    for span in itertools.chain(*document.clusters):
        by_words[_text(document, span).lower()].append(span)
    return list(by_words.values())


def _told(document, told, path):
    """The predicted clusters of a document: list of lists of (first, last word)."""
    if document.clusters is None:
        raise ValueError(
            f"document {document.example_id!r} has no clusters. Give --eval_gold with them."
        )
    try:
        return examples.parse_example(
            {
                "doc_key": document.example_id,
                "sentences": [list(words) for words in document.sentences],
                "clusters": told.get("clusters"),
            },
            needs_clusters=True,
        ).clusters
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _item(document, told):
    score = metrics.scores([(document.clusters, told)])["f1"]
    is_right = told == document.clusters
    sentences = [" ".join(words) for words in document.sentences]
    marked = [
        tuple({_text(document, span) for cluster in clusters for span in cluster})
        for clusters in (document.clusters, told)
    ]
    return results.Item(
        key=document.example_id,
        question=results.clipped(sentences[0])[:120],
        prediction=_shown(document, told),
        gold=_shown(document, document.clusters),
        is_right=is_right,
        score=1.0 if is_right else score,
        passages=(results.Passage("", tuple(("plain", f"{x} ") for x in sentences)),),
        marked_gold=marked[0],
        marked_predicted=marked[1],
    )


def _text(document, span):
    words = [word for sentence in document.sentences for word in sentence]
    return " ".join(words[span[0] : span[1] + 1])


def _shown(document, clusters):
    shown = (" = ".join(_text(document, span) for span in cluster) for cluster in clusters)
    return "; ".join(shown) or "(none)"
