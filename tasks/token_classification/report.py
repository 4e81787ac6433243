"""The report on tags: the entities, or the words, that were found beside the actual ones.

The baseline gives every word the most frequent tag.
"""

import itertools

from etcmodel.reports import results

from . import examples, metrics
from .config import TokenClassificationFeatureOptions

__all__ = ["read_results"]

_OPTIONS = ("words_field", "tags_field", "id_field", "word_column", "tag_column")


def read_results(given):
    """The `reports.results.Results` of a `Given`, whose options name labels and fields.

    Raises:
        ValueError: if a file is malformed, the labels are not known, or no prediction matches.
    """
    if "labels" not in given.options:
        raise ValueError("--task=token_classification also needs --run: its options name the tags.")
    labels = tuple(given.options["labels"])
    found = {name: given.options[name] for name in _OPTIONS if name in given.options}
    options = TokenClassificationFeatureOptions(labels=labels, **found)
    predictions = results.read_object(given.predictions_file)
    gold = list(examples.example_reader(options)(given.eval_gold))
    keys = [example.example_id for example in gold]
    results.check_answers(predictions, keys, given.predictions_file, dict)
    rows = [
        _told(example, predictions[example.example_id], given.predictions_file)
        for example in gold
        if example.example_id in predictions
    ]
    tags = itertools.chain(*(tags for row in rows for tags in row["gold"]))
    constant = results.most_frequent(tags)
    fixed = [{**row, "tags": [[constant] * len(x) for x in row["gold"]]} for row in rows]
    is_of_entities = metrics.are_entities(labels)
    return results.Results(
        metrics=metrics.metrics(rows, labels),
        best_metric=metrics.best_metrics(labels)[0],
        items=tuple(_item(row, is_of_entities) for row in rows),
        noun="texts",
        baselines={"the most frequent tag": metrics.metrics(fixed, labels)},
        score_name="F1 of entities" if is_of_entities else "Accuracy",
    )


def _told(example, told, path):
    """A value of `metrics.combine`, in sentences."""
    if example.tags is None:
        raise ValueError(f"example {example.example_id!r} has no tags. Give --eval_gold with them.")
    words, gold = map(examples.sentences_of, (example.words, example.tags))
    tags = examples.sentences_of(example.words, told.get("tags") or ())
    if not _are_tags(tags) or [len(x) for x in tags] != [len(x) for x in words]:
        raise ValueError(
            f"{path}: the prediction of {example.example_id!r} must have `tags`, one for each word "
            "of the gold file, in lists of the same form"
        )
    return {"id": example.example_id, "words": words, "gold": gold, "tags": tags}


def _are_tags(value):
    """Whether a value is a list of lists of tags, which may be None."""
    return isinstance(value, list) and all(
        isinstance(tags, list) and all(tag is None or isinstance(tag, str) for tag in tags)
        for tags in value
    )


def _item(row, is_of_entities):
    if is_of_entities:
        right, told = (_entities(row, name) for name in ("gold", "tags"))
        total = len(right) + len(told)
        score = 2 * len({*right} & {*told}) / total if total else 1.0
    else:
        right, told = (
            [f"{word}/{tag}" for words, tags in zip(row["words"], row[name], strict=True)
             for word, tag in zip(words, tags, strict=True)]
            for name in ("gold", "tags")
        )  # fmt: skip
        score = sum(map(str.__eq__, right, told)) / len(right)
    sentences = [" ".join(words) for words in row["words"]]
    return results.Item(
        key=row["id"],
        question=results.clipped(sentences[0])[:120],
        prediction=_shown(told),
        gold=_shown(right),
        is_right=score == 1,
        score=score,
        passages=(results.Passage("", tuple(("plain", f"{x} ") for x in sentences)),),
        marked_gold=tuple(x[-1] for x in right) if is_of_entities else (),
        marked_predicted=tuple(x[-1] for x in told) if is_of_entities else (),
    )


def _entities(row, name):
    """(sentence, kind, first word, word behind the last, text) of all entities."""
    return [
        (number, kind, start, end, " ".join(words[start:end]))
        for number, (words, tags) in enumerate(zip(row["words"], row[name], strict=True))
        for kind, start, end in metrics.entities([tag or "O" for tag in tags])
    ]


def _shown(found):
    told = [x if isinstance(x, str) else f"{x[-1]} ({x[1]})" for x in found]
    return ", ".join(told) or "(none)"
