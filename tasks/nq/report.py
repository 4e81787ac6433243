"""The report on Natural Questions: long and short answers, and the position of the long answer.

The baseline predicts the first paragraph, table or list of each page, with equal scores, and no
short answer.
"""

import dataclasses
import itertools

from etcmodel.reports import results

from . import examples, metrics
from .examples import example_id_of
from .metrics import NO_PREDICTION, parse_predictions

__all__ = ["read_results"]


def read_results(given):
    """The `reports.results.Results` of a `Given`, whose gold files must have the pages.

    Only one page at a time is in memory: all of them would need gigabytes.

    Raises:
        ValueError: if a file is malformed, there is no gold example with annotations, or no
            prediction matches one.
    """
    predictions = results.read_object(given.predictions_file)
    parsed = parse_predictions(predictions)
    gold, items, places, first_parts = {}, {}, {}, {}
    files = examples.matching_files(given.eval_gold)
    for page in itertools.chain.from_iterable(map(examples.read_examples, files)):
        if not page.annotations:
            continue
        key = page.example_id
        gold[key], first_parts[key] = page.annotations, _first_part(page)
        items[key] = _item(page, parsed.get(key, NO_PREDICTION))
        if (start := _first_long(page).start) >= 0:
            places[key] = start / len(page.words)
    own = [entry for entry in predictions["predictions"] if example_id_of(entry) in gold]
    predictions = {"predictions": own}
    long, short = metrics.verdicts(gold, predictions)
    results.check_answers(parsed, gold, given.predictions_file, object)
    points = [
        (place, float(long[key].correct))
        for key, place in places.items()
        if long[key].gold_has_answer
    ]
    baseline = {"predictions": list(first_parts.values())}
    return results.Results(
        metrics=metrics.metrics(gold, predictions),
        best_metric="mean-best-threshold-f1",
        items=tuple(_judged(item, long[key], short[key]) for key, item in items.items()),
        noun="questions",
        baselines={"the first part of each page": metrics.metrics(gold, baseline)},
        score_name="Correct long answer",
        places=results.Places("Recall of long answers", "the long answer", tuple(points)),
    )


def _first_part(page):
    top = [candidate for candidate in page.candidates if candidate.top_level]
    start, end = (top[0].start, top[0].end) if top else (-1, -1)
    return {
        "example_id": page.example_id,
        "long_answer": {"start_token": start, "end_token": end},
        "long_answer_score": 1.0,
        "short_answers_score": 0.0,
    }


def _item(page, prediction):
    """The `Item` before its answer is judged."""
    gold_long = _first_long(page)
    short_texts = [
        _text(page, span) for note in page.annotations for span in note.short_answers
    ] + [note.yes_no for note in page.annotations if note.yes_no != "NONE"]
    told = [_text(page, span) for span in prediction.short]
    told += [prediction.yes_no] if prediction.yes_no != "NONE" else []
    passages = [("Predicted long answer", prediction.long), ("A correct long answer", gold_long)]
    return results.Item(
        key=str(page.example_id),
        question=page.question,
        prediction=", ".join(told),
        gold=", ".join(dict.fromkeys(short_texts)) or "(no short answer)",
        is_right=False,
        passages=tuple(
            results.plain_passage(_text(page, span), name)
            for name, span in passages
            if span.start >= 0
        ),
        marked_gold=tuple(short_texts),
        marked_predicted=tuple(told),
    )


def _judged(item, long, short):
    """Completes an `Item` with its verdicts."""
    is_right = all(x.correct or not (x.gold_has_answer or x.predicted) for x in (long, short))
    score = float(long.correct) if long.gold_has_answer else None
    return dataclasses.replace(item, is_right=is_right, score=score)


def _first_long(page):
    """The long answer of the first annotator who gave one, or none."""
    found = (note.long_answer for note in page.annotations if note.long_answer.exists)
    return next(found, NO_PREDICTION.long)


def _text(page, span):
    words = zip(page.words[span.start : span.end], page.is_html[span.start : span.end], strict=True)
    return " ".join(word for word, is_html in words if not is_html)
