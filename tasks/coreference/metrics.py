"""Clusters from the scores of antecedents, and the metrics of CoNLL's shared tasks.

Sources: MUC of Vilain et al. 1995, B³ of Bagga and Baldwin 1998, CEAF with the similarity φ4 of Luo
2005, and their mean, the official score; for mentions that were not given, as Pradhan et al. 2014
("Scoring Coreference Partitions of Predicted Mentions") define them and the official scorer
(version 8.01) computes them.
"""

import collections
import json

import numpy as np

from etcmodel.finetuning import text_of

from .examples import merged
from .features import NOTHING

__all__ = ["NAMES", "best_matching", "combine", "counts", "line", "metrics", "scores"]

_SCORES = ("muc", "b_cubed", "ceaf_e")
NAMES = ("f1", *(f"{name}_f1" for name in (*_SCORES, "mention")))


def line(output):
    """The prediction of a record, as `combine` takes it: dict for JSON.

    Each span is in the cluster of its best antecedent, unless having none is better. Spans without
    antecedent, and which are none, are left out, as in OntoNotes.

    Args:
        output: dict of NumPy arrays: the record's features, and the outputs of `CoreferenceModel`.
    """
    words = np.asarray(output["words"])
    is_span = output["starts"] >= 0
    starts, ends = (words[np.asarray(output[x])[is_span]] for x in ("starts", "ends"))
    best = output["scores"][is_span].argmax(-1)
    links = {}  # From span to antecedent.
    for span, place in enumerate(best):
        if output["scores"][span, place] > 0:
            links[span] = int(output["antecedents"][span, place])
    clusters = {}
    for span, antecedent in links.items():  # Antecedents come first.
        cluster = clusters.setdefault(antecedent, [antecedent])
        cluster.append(span)
        clusters[span] = cluster
    document = text_of(output["document"])
    return {
        "id": text_of(output["example_id"]),
        "prediction": {
            "document": json.loads(document) if document else None,
            "words": words[words != NOTHING].tolist(),
            "clusters": [
                [[int(starts[x]), int(ends[x])] for x in cluster]
                for cluster in {id(x): x for x in clusters.values()}.values()
            ],
        },
    }


def combine(lines):
    """Predictions by id, of the windows of each document.

    Clusters of different windows are one if they have a span in common.

    Args:
        lines: iterable of `line`, in any order.
    Returns:
        dict of id to dict: `sentences` and `speakers`, lists of lists of str; `clusters`, sorted
        lists of [first word, last word], counted through the document from 0; `mentions`, the same
        as text; `words_left_out`, how many words no window has; and `gold`, the clusters, if they
        are known.
    Raises:
        ValueError: naming the id, if two documents have it, or a document's first window is
            missing.
    """
    by_id, found = collections.defaultdict(list), {}
    for each in lines:
        by_id[each["id"]].append(each["prediction"])
    for key, windows in by_id.items():
        documents = [x["document"] for x in windows if x["document"] is not None]
        if len(documents) != 1:
            problem = "are of two documents; ids must differ" if documents else "lack the first one"
            raise ValueError(f"The records with the id {key!r} {problem}.")
        (document,) = documents
        words = [word for sentence in document["sentences"] for word in sentence]
        clusters = merged(x for window in windows for x in window["clusters"])
        found[key] = {
            "sentences": document["sentences"],
            "speakers": document["speakers"],
            "clusters": [list(map(list, cluster)) for cluster in clusters],
            "mentions": [[" ".join(words[x : y + 1]) for x, y in cluster] for cluster in clusters],
            "words_left_out": len(words) - len({x for window in windows for x in window["words"]}),
        }
        if document["clusters"] is not None:
            found[key]["gold"] = document["clusters"]
    return found


def metrics(predicted):
    """The metrics of predictions: dict of float.

    Args:
        predicted: iterable of values of `combine`, with `gold`.
    Returns:
        `scores`, and `words_left_out`, the number of words that were cut off, in which no mention
        is found.
    """
    predicted = list(predicted)
    found = scores((told["gold"], told["clusters"]) for told in predicted)
    return {**found, "words_left_out": float(sum(told["words_left_out"] for told in predicted))}


def scores(pairs):
    """The scores of the official scorer: dict of float.

    Args:
        pairs: iterable of (gold clusters, predicted clusters) of each document; see `counts`.
    Returns:
        `f1`, the mean of those of `muc`, `b_cubed` and `ceaf_e`; each one's `<name>_precision`,
        `<name>_recall` and `<name>_f1`; and `mention_…`, of the spans alone.

    >>> from etcmodel.tasks.coreference import metrics
    >>> gold = [[(0, 0), (3, 3), (7, 8)], [(1, 1), (5, 5)]]
    >>> found = metrics.scores([(gold, [[(0, 0), (3, 3)], [(1, 1), (5, 5), (7, 8)]])])
    >>> {name: round(found[f"{name}_f1"], 3) for name in ("muc", "b_cubed", "ceaf_e")}
    {'muc': 0.667, 'b_cubed': 0.733, 'ceaf_e': 0.8}
    """
    total = collections.Counter()
    for gold, told in pairs:
        total.update(counts(gold, told))
    found = {}
    for name in (*_SCORES, "mention"):
        precision, recall = (
            total[f"{name}_{side}_part"] / total[f"{name}_{side}_whole"]
            if total[f"{name}_{side}_whole"]
            else 0.0
            for side in ("precision", "recall")
        )
        both = precision + recall
        found[f"{name}_precision"], found[f"{name}_recall"] = precision, recall
        found[f"{name}_f1"] = 2 * precision * recall / both if both else 0.0
    return {"f1": sum(found[f"{name}_f1"] for name in _SCORES) / len(_SCORES), **found}


def counts(gold, told):
    """The numerators and denominators of a document's scores: dict of float.

    Clusters with a single mention count, on both sides, as in the official scorer; OntoNotes has
    none. A span that is predicted twice counts where it is first.

    Args:
        gold, told: list of clusters, lists of spans (first word, last word).
    """
    sides = {"precision": _distinct(told), "recall": _distinct(gold)}
    common = np.zeros([len(sides["recall"]), len(sides["precision"])])
    place = {span: x for x, cluster in enumerate(sides["precision"]) for span in cluster}
    for row, cluster in enumerate(sides["recall"]):
        for span in cluster & place.keys():
            common[row, place[span]] += 1
    found = {}
    sizes = {side: np.array([len(x) for x in clusters]) for side, clusters in sides.items()}
    for side, shared in (("precision", common.T), ("recall", common)):
        size = sizes[side]
        # What the other side makes of each cluster: its parts there, and each lacking span alone.
        parts = np.count_nonzero(shared, axis=1) + size - shared.sum(1)
        found |= {
            f"muc_{side}_part": (size - parts).sum(),
            f"muc_{side}_whole": (size - 1).sum(),
            f"b_cubed_{side}_part": ((shared**2).sum(1) / size).sum(),
            f"b_cubed_{side}_whole": size.sum(),
            f"ceaf_e_{side}_whole": len(size),
            f"mention_{side}_part": common.sum(),
            f"mention_{side}_whole": size.sum(),
        }
    alike = 2 * common / (sizes["recall"][:, np.newaxis] + sizes["precision"])
    similarity = sum(alike[pair] for pair in best_matching(alike))
    found |= dict.fromkeys(("ceaf_e_precision_part", "ceaf_e_recall_part"), similarity)
    return {name: float(value) for name, value in found.items()}


def _distinct(clusters):
    """Clusters as sets of spans, each span in the first cluster that has it; none is empty."""
    seen, found = set(), []
    for cluster in clusters:
        spans = {tuple(x) for x in cluster} - seen
        seen |= spans
        found.append(spans)
    return [x for x in found if x]


def best_matching(weights):
    """The pairs of rows and columns, each in one pair at most, with the highest sum of weights.

    The Hungarian method with shortest augmenting paths (Kuhn 1955, Jonker and Volgenant 1987); of
    SciPy, which has it, nothing else is needed.

    Args:
        weights: float [num_rows, num_columns], at least 0.
    Returns:
        list of (row, column), of the shorter side all.

    >>> from etcmodel.tasks.coreference import metrics
    >>> metrics.best_matching(np.array([[0.9, 0.8], [0.7, 0.1]]))
    [(0, 1), (1, 0)]
    """
    weights = np.asarray(weights, np.float64)
    if weights.shape[0] > weights.shape[1]:
        return sorted((row, column) for column, row in best_matching(weights.T))
    rows, columns = weights.shape
    row_of = np.full(columns + 1, -1)  # The last column is where each row begins its path.
    of_rows, of_columns = np.zeros(rows), np.zeros(columns + 1)
    for row in range(rows):
        column, row_of[-1] = columns, row
        slack, before = np.full(columns, np.inf), np.full(columns, columns)
        is_used = np.zeros(columns + 1, bool)
        while row_of[column] >= 0:
            is_used[column] = True
            at = row_of[column]
            costs = -weights[at] - of_rows[at] - of_columns[:-1]
            is_free = ~is_used[:-1]
            is_less = is_free & (costs < slack)
            slack[is_less], before[is_less] = costs[is_less], column
            nearest = int(np.argmin(np.where(is_free, slack, np.inf)))
            step = slack[nearest]
            of_rows[row_of[is_used]] += step
            of_columns[is_used] -= step
            slack[is_free] -= step
            column = nearest
        while column != columns:
            row_of[column] = row_of[before[column]]
            column = before[column]
    return sorted((int(row), int(column)) for column, row in enumerate(row_of[:-1]) if row >= 0)
