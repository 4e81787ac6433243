"""The report on TriviaQA: answers, and the first position of a correct one in its document.

The baseline gives every question the most frequent answer.
"""

from etcmodel.reports import results

from . import examples
from . import metrics as metrics_lib
from .examples import find_answers

__all__ = ["read_results"]


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Documents that cannot be read are not shown.

    Raises:
        ValueError: if a file is malformed, of other questions, or a gold example has no answer.
    """
    examples.check_folder(given.evidence_dir)
    predictions = results.read_object(given.predictions_file)
    gold = list(examples.read_examples(given.eval_gold))
    # Runs do not store `by_document`, but answers by document have distinct keys.
    by_document = not any(example.example_id in predictions for example in gold)
    keys = [key for example in gold for key in example.keys(by_document)]
    results.check_answers(predictions, keys, given.predictions_file)
    metrics = metrics_lib.metrics(gold, predictions, by_document)
    answer = results.most_frequent(example.answers[0] for example in gold)
    constant = dict.fromkeys(keys, answer)
    rows = [
        _row(example, key, predictions, given.evidence_dir, by_document)
        for example in gold
        for key in example.keys(by_document)
    ]
    points = tuple((place, item.score) for item, place in rows if place is not None)
    return results.Results(
        metrics=metrics,
        best_metric="f1",
        items=tuple(item for item, _ in rows),
        noun="questions with a document" if by_document else "questions",
        baselines={"the most frequent answer": metrics_lib.metrics(gold, constant, by_document)},
        score_name="Answer F1",
        places=results.Places("Answer F1", "the first right answer", points) if points else None,
    )


def _row(example, key, predictions, folder, by_document):
    """(`Item`, position of the first correct answer in its first document with one, or None)."""
    pages = [x for x in example.pages if not by_document or key.endswith(f"--{x.name}")]
    passages, place, shown = [], None, set()
    for page in pages:
        try:
            text = examples.read_document(page, folder)
        except examples.EvidenceError:
            continue
        matches = find_answers(text, example.answers)
        found = [start for start, *_ in matches]
        shown |= {text[start:end] for start, end, *_ in matches}
        if place is None and found:
            place = min(found) / len(text)
        passages.append(results.plain_passage(text, page.name, min(found, default=0)))
    told = predictions.get(key)
    exact, f1 = (0.0, 0.0) if told is None else metrics_lib.answer_score(told, example.answers)
    if exact:
        shown.add(told)
    item = results.Item(
        key=key,
        question=example.question,
        prediction=told or "",
        gold=", ".join(example.answers),
        is_right=exact == 1,
        score=f1,
        passages=tuple(passages),
        marked_gold=(*example.answers, *sorted(shown)),  # The former are normalized.
        marked_predicted=(told or "",),
    )
    return item, place
