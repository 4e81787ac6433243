"""The report on majority tagging: tags, and their accuracy by position.

The baseline is that of `metrics.metrics`: the odd number of each pair.
"""

import functools

from etcmodel.reports import results

from . import examples, metrics

__all__ = ["read_results"]

_CONSTANT = "constant_"


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, of other examples, or a gold example has no tags.
    """
    predictions = results.read_object(given.predictions_file)
    gold = list(examples.read_examples(given.eval_gold))
    ids = [example.example_id for example in gold]
    results.check_answers(predictions, ids, given.predictions_file, list)
    found = metrics.metrics(gold, predictions)
    constant = {
        name.removeprefix(_CONSTANT): value
        for name, value in found.items()
        if name.startswith(_CONSTANT)
    }
    return results.Results(
        metrics={name: found[name] for name in constant},
        best_metric="tag_accuracy",
        items=tuple(_item(x, predictions.get(x.example_id, ())) for x in gold),
        noun="sequences",
        baselines={"the odd number of each pair": constant},
        score_name="Fraction of correct tags",
        places=results.Places(
            "Tag accuracy",
            "the token",
            tuple(x for y in gold for x in _points(y, predictions.get(y.example_id, ()))),
        ),
    )


def _item(example, predicted):
    rights = [score for _, score in _points(example, predicted)]
    return results.Item(
        key=example.example_id,
        question=_shown(example.tokens),
        prediction=_shown(predicted),
        gold=_shown(example.tags),
        is_right=all(rights),
        score=sum(rights) / len(rights),
    )


def _points(example, predicted):
    """(position in the sequence, whether the tag is correct) of each token."""
    tags, length = example.tags, len(example.tags)
    told = predicted if len(predicted) == length else [None] * length
    return [_point(i, length, told[i] == tags[i]) for i in range(length)]


@functools.lru_cache(maxsize=1 << 16)  # Millions of tokens share few points.
def _point(index, length, is_right):
    return index / length, float(is_right)


def _shown(numbers):
    return results.clipped(" ".join(map(str, numbers)))
