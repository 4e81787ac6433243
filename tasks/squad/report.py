"""The report on SQuAD: answers, and the position of the right one in the context.

The baseline gives every question the most frequent answer, which may be that there is none.
"""

from etcmodel.reports import results

from . import examples, metrics

__all__ = ["read_results"]


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, of other questions, or a gold example has no answers.
    """
    predictions = results.read_object(given.predictions_file)
    gold = list(examples.read_examples(given.eval_gold))
    results.check_answers(predictions, [x.example_id for x in gold], given.predictions_file)
    found = metrics.metrics(gold, predictions)
    with_none = "total" in found
    answer = results.most_frequent(x.answers[0].text if x.answers else "" for x in gold)
    constant = {example.example_id: answer for example in gold}
    rows = [_row(example, predictions.get(example.example_id), with_none) for example in gold]
    points = tuple((place, item.score) for item, place in rows if place is not None)
    return results.Results(
        metrics=found,
        best_metric="f1",
        items=tuple(item for item, _ in rows),
        noun="questions",
        baselines={"the most frequent answer": metrics.metrics(gold, constant)},
        score_name="Answer F1",
        places=results.Places("Answer F1", "the first right answer", points) if points else None,
    )


def _row(example, told, with_none):
    """(`Item`, position of the first right answer in the context, or None)."""
    texts = tuple(dict.fromkeys(answer.text for answer in example.answers))
    exact, f1 = (0.0, 0.0) if told is None else metrics.example_score(told, example, with_none)
    found = [example.context.find(text) for text in texts]
    first = min((place for place in found if place >= 0), default=None)
    item = results.Item(
        key=example.example_id,
        question=example.question,
        prediction=told or "",
        gold=", ".join(texts) or "(none)",
        is_right=exact == 1,
        score=f1,
        passages=(results.plain_passage(example.context, "", first or 0),),
        marked_gold=texts,
        marked_predicted=(told,) if told else (),
    )
    return item, None if first is None else first / len(example.context)
