"""The report on HotpotQA: answers, supporting facts, and the position of the last fact.

The baseline does not read the input: it gives the most frequent answer, and the first sentences of
the first two paragraphs as supporting facts.
"""

from etcmodel.reports import results

from . import examples
from . import metrics as metrics_lib

__all__ = ["read_results"]

_PLAIN, _FOUND, _MISSED, _WRONG = "plain", "correct", "missed", "wrong"


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, of other examples, or the gold examples have no labels.
    """
    predictions = results.read_object(given.predictions_file)
    predictions = {name: _part(predictions, name, given) for name in ("answer", "sp")}
    gold = list(examples.read_examples(given.eval_gold))
    ids = [example.example_id for example in gold]
    results.check_answers(predictions["answer"], ids, given.predictions_file)
    metrics = metrics_lib.metrics(gold, predictions)
    items = tuple(_item(example, predictions) for example in gold)
    places = [_place(example) for example in gold]
    points = [(p, x.score) for p, x in zip(places, items, strict=True) if p is not None]
    return results.Results(
        metrics=metrics,
        best_metric="f1",
        items=items,
        noun="questions",
        baselines={"the most frequent answer, and first sentences": _baseline(gold)},
        score_name="Answer F1",
        places=results.Places("Answer F1", "the last supporting fact", tuple(points)),
    )


def _part(predictions, name, given):
    """The answers or the supporting facts, by example."""
    if not isinstance(part := predictions.get(name), dict):
        raise ValueError(
            f"{given.predictions_file} must have a JSON object `{name}`. Give --predictions a file "
            "of --task=hotpotqa."
        )
    return part


def _baseline(gold):
    answer = results.most_frequent(example.answer for example in gold)
    facts = {x.example_id: [(y.title, 0) for y in x.paragraphs[:2]] for x in gold}
    return metrics_lib.metrics(gold, {"answer": dict.fromkeys(facts, answer), "sp": facts})


def _item(example, predictions):
    answer = predictions["answer"].get(example.example_id, "")
    facts = {tuple(fact) for fact in predictions["sp"].get(example.example_id, ())}
    score = metrics_lib.answer_score(answer, example.answer)
    gold = {tuple(fact) for fact in example.supporting_facts}
    return results.Item(
        key=example.example_id,
        question=example.question,
        prediction=answer,
        gold=example.answer,
        is_right=score.em == 1,
        score=score.f1 if example.example_id in predictions["answer"] else 0.0,
        passages=tuple(_passage(paragraph, gold, facts) for paragraph in example.paragraphs),
        marked_gold=(example.answer,),
        marked_predicted=(answer,),
    )


def _passage(paragraph, gold, predicted):
    facts = ((paragraph.title, index) for index in range(len(paragraph.sentences)))
    statuses = (_status(fact in gold, fact in predicted) for fact in facts)
    return results.Passage(paragraph.title, tuple(zip(statuses, paragraph.sentences, strict=True)))


def _status(is_gold, is_predicted):
    if is_gold:
        return _FOUND if is_predicted else _MISSED
    return _WRONG if is_predicted else _PLAIN


def _place(example):
    """Start of the last supporting fact, as a fraction of the characters; None without one."""
    gold = {tuple(fact) for fact in example.supporting_facts}
    place, last = 0, None
    for paragraph in example.paragraphs:
        for index, sentence in enumerate(paragraph.sentences):
            last = place if (paragraph.title, index) in gold else last
            place += len(sentence)
    return None if last is None else last / max(place, 1)
