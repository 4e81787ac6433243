"""The report on numerical reasoning: answers, and exact match by kind of question.

The baseline gives every question the most frequent answer.
"""

from etcmodel.reports import results

from . import examples
from . import metrics as metrics_lib

__all__ = ["read_results"]


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, of other examples, or a gold example has no answer.
    """
    predictions = results.read_object(given.predictions_file)
    gold = list(examples.read_examples(given.eval_gold))
    ids = [example.example_id for example in gold]
    results.check_answers(predictions, ids, given.predictions_file)
    metrics = metrics_lib.metrics(gold, predictions)
    constant = results.most_frequent(example.answer for example in gold)
    frequent = metrics_lib.metrics(gold, {x.example_id: constant for x in gold})
    return results.Results(
        metrics=metrics,
        best_metric="exact_match",
        items=tuple(_item(x, predictions.get(x.example_id, "")) for x in gold),
        noun="questions",
        baselines={"the most frequent answer": frequent},
        score_name="Right",
    )


def _item(example, answer):
    is_right = metrics_lib.metrics([example], {example.example_id: answer})["exact_match"] == 1
    return results.Item(
        key=example.example_id,
        question=example.question,
        prediction=answer,
        gold=example.answer,
        is_right=is_right,
        score=float(is_right),
        passages=(results.plain_passage(example.passage, example.kind),),
        marked_gold=(example.answer,),
        marked_predicted=(answer,),
    )
