"""Tags from logits, entities from tags, and the metrics of CoNLL's shared tasks.

Source: Tjong Kim Sang and De Meulder 2003 (CoNLL), whose script conlleval counts an entity as right
if its kind and all its words are.
"""

import collections
import itertools
import json

import numpy as np

from etcmodel.finetuning import metrics as metrics_lib
from etcmodel.finetuning import text_of
from etcmodel.text.tags import OUTSIDE, are_entities, entities

from . import examples
from .features import NOTHING

__all__ = ["are_entities", "best_metrics", "combine", "entities", "line", "metrics"]


def line(output):
    """The prediction of a record, as `combine` takes it: dict for JSON.

    Args:
        output: dict of NumPy arrays: the record's features, and `logits` [long_len, num_labels].
    """
    word_ids = np.asarray(output["word_ids"])
    places = np.flatnonzero(word_ids != NOTHING)
    words, tags = (text_of(output[x]) if x in output else "" for x in ("words", "tags"))
    length = int(np.sum(np.asarray(output["example_ids"]) > 0))
    shares = metrics_lib.softmax(output["logits"][places])
    return {
        "id": text_of(output["example_id"]),
        "prediction": {
            "words": json.loads(words) if words else None,
            "gold": json.loads(tags) if tags else None,
            "word_ids": word_ids[places].tolist(),
            "context": np.minimum(places, length - 1 - places).tolist(),
            "best": shares.argmax(-1).tolist(),
            "probabilities": shares.max(-1).tolist(),
        },
    }


def combine(lines, labels):
    """Predictions by id, of the windows of each example.

    A word in several windows has the tag of that in which it is farthest from both ends.

    Args:
        lines: iterable of `line`, in any order.
        labels: sequence of str.
    Returns:
        dict of id to dict: `words`; `tags` and `probabilities`, None for a word that no window has;
        `entities`, if the labels are tags of them: a list of dict of `kind`, `text`, and the words
        `start` to `end`, exclusive, in `sentence`; and `gold`, the tags, if they are known.
        `words`, `tags`, `probabilities` and `gold` are lists, or lists of a list per sentence.
    Raises:
        ValueError: naming the id, if two texts have it, or a text's first window is missing.
    """
    by_id, found = collections.defaultdict(list), {}
    for line in lines:
        by_id[line["id"]].append(line["prediction"])
    for key, windows in by_id.items():
        firsts = [window for window in windows if window["words"] is not None]
        if len(firsts) != 1:
            problem = "are of two texts; ids must differ" if firsts else "lack the text's first one"
            raise ValueError(f"The records with the id {key!r} {problem}.")
        words, best = firsts[0]["words"], {}
        names = ("word_ids", "context", "best", "probabilities")
        # In equal contexts, that of the first window, whichever was read first.
        windows.sort(key=lambda window: window["word_ids"][:1])
        for word, context, label, share in itertools.chain(
            *(zip(*(window[name] for name in names), strict=True) for window in windows)
        ):
            if word not in best or context > best[word][0]:
                best[word] = context, labels[label], share
        tags, shares = (
            _like(words, [best[x][part] if x in best else None for x in range(_count(words))])
            for part in (1, 2)
        )
        found[key] = {"words": words, "tags": tags, "probabilities": shares}
        if are_entities(labels):
            found[key]["entities"] = _told_entities(words, tags)
        if firsts[0]["gold"] is not None:
            found[key]["gold"] = firsts[0]["gold"]
    return found


def _count(words):
    return sum(map(len, examples.sentences_of(words)))


def _like(words, values):
    """Values of all words as a list, or as a list for each sentence, as the words are."""
    if isinstance(words[0], str):
        return values
    rest = iter(values)
    return [list(itertools.islice(rest, len(sentence))) for sentence in words]


def _filled(sentences):
    """Tags of sentences, with "O" for words without one."""
    return [[tag or OUTSIDE for tag in tags] for tags in sentences]


def _told_entities(words, tags):
    both = zip(
        examples.sentences_of(words), _filled(examples.sentences_of(words, tags)), strict=True
    )
    return [
        {
            "kind": kind,
            "text": " ".join(sentence[start:end]),
            "sentence": number,
            "start": start,
            "end": end,
        }
        for number, (sentence, own) in enumerate(both)
        for kind, start, end in entities(own)
    ]


def best_metrics(labels):
    """The metrics that may choose the best checkpoint, the default one first: tuple of str."""
    if not are_entities(labels):
        return ("accuracy", "macro_f1")
    kinds = sorted({label.partition("-")[2] for label in labels if label != OUTSIDE})
    return ("f1", "precision", "recall", "accuracy", *(f"f1/{kind}" for kind in kinds))


def metrics(predictions, labels):
    """The metrics of predictions whose tags are known: dict of float.

    Args:
        predictions: iterable of the values of `combine`'s dict, with `gold`.
        labels: sequence of str.
    Returns:
        `accuracy`, the share of words with the right tag. For entities, `precision`, `recall` and
        `f1` (of all, and of each kind as `f1/<kind>`), else `macro_f1`. And `words_left_out`, the
        number of words that were cut off, or have no token in the vocabulary's normal form, which
        count as outside of entities, or as wrong.
    """
    pairs, left_out = [], 0
    for told in predictions:
        gold, tags = (examples.sentences_of(told["words"], told[x]) for x in ("gold", "tags"))
        left_out += sum(tag is None for tag in itertools.chain(*tags))
        pairs += zip(gold, _filled(tags) if are_entities(labels) else tags, strict=True)
    words = [both for gold, tags in pairs for both in zip(gold, tags, strict=True)]
    found = {"accuracy": float(np.mean([right == told for right, told in words]))}
    if are_entities(labels):
        found |= _entity_scores(pairs)
    else:
        # Those of the model, and tags that it does not know, which are never right.
        known = dict.fromkeys([*labels, *(right for right, _ in words)])
        numbers = {label: number for number, label in enumerate(known)}
        given, told = (
            np.eye(len(known) + 1, dtype=bool)[[numbers.get(pair[part], -1) for pair in words]]
            for part in (0, 1)
        )
        _, found["macro_f1"] = metrics_lib.f1_scores(told[:, :-1], given[:, :-1])
    return {**found, "words_left_out": float(left_out)}


def _entity_scores(pairs):
    """Precision, recall and F1 over (gold tags, tags) of sentences."""
    counts = collections.Counter()
    for gold, tags in pairs:
        right, told = set(entities(gold)), set(entities(tags))
        for name, group in (("gold", right), ("told", told), ("both", right & told)):
            counts.update((name, kind) for kind, _, _ in group)
    kinds = sorted({kind for _, kind in counts})
    total = {name: sum(counts[name, kind] for kind in kinds) for name in ("gold", "told", "both")}
    return {
        "precision": _share(total["both"], total["told"]),
        "recall": _share(total["both"], total["gold"]),
        "f1": _share(2 * total["both"], total["gold"] + total["told"]),
        **{
            f"f1/{kind}": _share(
                2 * counts["both", kind], counts["gold", kind] + counts["told", kind]
            )
            for kind in kinds
        },
    }


def _share(part, whole):
    return part / whole if whole else 0.0
