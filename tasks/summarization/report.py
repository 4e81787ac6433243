"""The report on summarization: summaries beside their references.

The baseline is the first three sentences of each document.
"""

import statistics

from etcmodel.reports import results
from etcmodel.text.sentence_splitting import sentence_splitter

from . import examples
from . import metrics as metrics_lib
from .config import SummarizationFeatureOptions

__all__ = ["read_results"]

_NUM_FIRST = 3
_FIELDS = ("text_fields", "summary_fields", "id_fields")


def read_results(given):
    """The `reports.results.Results` of a `Given`.

    Raises:
        ValueError: if a file is malformed, or no prediction matches a document.
    """
    rows = results.read_rows(given.predictions_file, {"id": str, "summary": str})
    predictions = {row["id"]: row["summary"] for row in rows}
    named = {name: tuple(given.options[name]) for name in _FIELDS if name in given.options}
    read = examples.example_reader(SummarizationFeatureOptions(**named))
    gold = [example for example in read(given.eval_gold) if example.example_id in predictions]
    results.check_answers(predictions, [x.example_id for x in gold], given.predictions_file)
    pairs = [(predictions[example.example_id], example.summary) for example in gold]
    split = sentence_splitter("simple")
    lead = ["\n".join(split(example.text)[:_NUM_FIRST]) for example in gold]
    metrics = metrics_lib.rouge(pairs)
    scores = [metrics_lib.rouge([pair])["rouge2"] for pair in pairs]
    middle = statistics.median(scores)
    references = [example.summary for example in gold]
    return results.Results(
        metrics=metrics,
        best_metric="rouge2",
        items=tuple(
            _item(example, predictions[example.example_id], score, middle)
            for example, score in zip(gold, scores, strict=True)
        ),
        noun="documents",
        baselines={
            "the first three sentences": metrics_lib.rouge(zip(lead, references, strict=True))
        },
        score_name="ROUGE-2",
        filter_name="Worse half only",
    )


def _item(example, summary, score, middle):
    return results.Item(
        key=example.example_id,
        question=results.clipped(example.text)[:120],
        prediction=summary,
        gold=example.summary,
        is_right=score >= middle,
        score=score,
        passages=(results.plain_passage(example.text),),
    )
