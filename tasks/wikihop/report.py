"""The report on WikiHop: answers, and the first mention of the correct one.

Queries are shown in readable form: "educated at: rhea abelin" for "educated_at rhea abelin".

The baseline predicts the candidate with the most mentions in the documents.
"""

import re

from etcmodel.reports import results

from . import examples
from . import metrics as metrics_lib
from .examples import is_same

__all__ = ["in_words", "read_results"]


def in_words(query):
    """A query, "relation subject", in readable form: str. Questions in words stay unchanged."""
    relation, _, subject = query.strip().partition(" ")
    if "_" not in relation and subject.endswith("?"):
        return query
    return ": ".join(filter(None, [relation.replace("_", " "), subject.strip()]))


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, of other examples, or no gold example has an answer.
    """
    predictions = results.read_object(given.predictions_file)
    read = list(examples.read_examples(given.eval_gold))
    ids = [example.example_id for example in read]
    results.check_answers(predictions, ids, given.predictions_file)
    gold = [example for example in read if example.answer is not None]
    metrics = metrics_lib.metrics(gold, predictions)
    items = tuple(_item(example, predictions) for example in gold)
    texts = [" ".join(example.documents) for example in gold]
    found = [_places(text, x.answer) for text, x in zip(texts, gold, strict=True)]
    points = (
        (places[0] / len(text), item.score)
        for places, text, item in zip(found, texts, items, strict=True)
        if places
    )
    frequent = {
        x.example_id: max(x.candidates, key=lambda c, text=text: len(_places(text, c)))
        for text, x in zip(texts, gold, strict=True)
    }
    return results.Results(
        metrics=metrics,
        best_metric="accuracy",
        items=items,
        noun="questions",
        baselines={"the candidate with most mentions": metrics_lib.metrics(gold, frequent)},
        score_name="Accuracy",
        places=results.Places("Accuracy", "the first mention of the answer", tuple(points)),
    )


def _item(example, predictions):
    answer = predictions.get(example.example_id, "")
    is_right = is_same(answer, example.answer)
    documents = (
        results.plain_passage(text, f"Document {number}")
        for number, text in enumerate(example.documents, 1)
    )
    return results.Item(
        key=example.example_id,
        question=in_words(example.query),
        prediction=answer,
        gold=example.answer,
        is_right=is_right,
        score=float(is_right),
        passages=tuple(documents),
        marked_gold=(example.answer,),
        marked_predicted=(answer,),
        candidates=example.candidates,
    )


def _places(text, words):
    """The positions of words in a text, ignoring case: list of int."""
    pattern = rf"(?<!\w){re.escape(words.strip())}(?!\w)"
    return [match.start() for match in re.finditer(pattern, text, re.IGNORECASE)]
