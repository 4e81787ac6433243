"""Predictions in the official format of Natural Questions, checked as the official scorer does.

Source: `read_prediction_json` of the scorer (`nq_eval`) that comes with Kwiatkowski et al. 2019.
"""

import contextlib
import dataclasses
import math
import numbers

from etcmodel.preprocessing.json_fields import Fields
from etcmodel.shown_values import shown

from .raw_data import YES_NO_ANSWERS, example_id_of
from .spans import NO_SPAN, Span, span_of

__all__ = ["NO_PREDICTION", "Prediction", "parse_predictions"]

_FORMAT = "The predictions are not in the official format of Natural Questions: "


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The prediction for one example.

    Attributes:
        long: `Span`, `NO_SPAN` for none.
        long_score, short_score: float.
        short: tuple of `Span`s, without missing ones.
        yes_no: str. 'NONE', 'YES' or 'NO'; with the latter two, there are no short spans.
    """

    long: Span
    long_score: float
    short: tuple
    short_score: float
    yes_no: str


# No answer, and below every threshold.
NO_PREDICTION = Prediction(NO_SPAN, -math.inf, (), -math.inf, "NONE")


def parse_predictions(predictions):
    """Checks predictions.

    Args:
        predictions: {"predictions": [{"example_id", "long_answer", "long_answer_score",
            "short_answers", "short_answers_score", "yes_no_answer"}, …]}. Missing answers mean no
            answer; the scores are required.

    Returns:
        dict from example id to `Prediction`.

    Raises:
        ValueError: names the prediction and the field that is malformed; also for a yes or no
            together with a short span, and for a second prediction of an example.
    """
    raws = predictions.get("predictions") if isinstance(predictions, dict) else None
    if not isinstance(raws, list | tuple):
        raise ValueError(
            f"{_FORMAT}it is an object with a list `predictions`. Received: {shown(predictions)}"
        )
    parsed = {}
    for number, raw in enumerate(raws, start=1):
        try:
            example_id, prediction = example_id_of(raw), _prediction(raw)
        except ValueError as error:
            raise ValueError(f"{_FORMAT}prediction {number}: {error}") from error
        if example_id in parsed:
            raise ValueError(f"There are two predictions for the example {example_id}.")
        parsed[example_id] = prediction
    return parsed


def _prediction(raw):
    spans = raw.get("short_answers", [])
    if not isinstance(spans, list | tuple):
        raise _error(raw, "short_answers", "must be a list of objects")
    short = tuple(_span(raw, "short_answers", span) for span in spans)
    yes_no = raw.get("yes_no_answer", "NONE")
    if not isinstance(yes_no, str) or yes_no.upper() not in YES_NO_ANSWERS:
        raise _error(raw, "yes_no_answer", "must be yes, no or none")
    prediction = Prediction(
        long=_span(raw, "long_answer", raw["long_answer"]) if "long_answer" in raw else NO_SPAN,
        long_score=_score(raw, "long_answer_score"),
        short=tuple(span for span in short if span.exists),
        short_score=_score(raw, "short_answers_score"),
        yes_no=yes_no.upper(),
    )
    if prediction.yes_no != "NONE" and prediction.short:
        raise _error(raw, "yes_no_answer", "must be none where there is a short answer")
    return prediction


def _span(raw, field, value):
    try:
        return span_of(value)
    except ValueError as error:
        raise _error(raw, field, str(error)) from error


def _score(raw, field):
    score = raw.get(field)
    if isinstance(score, numbers.Real) and not isinstance(score, bool):
        with contextlib.suppress(OverflowError):
            if not math.isnan(score):
                return float(score)
    raise _error(raw, field, "must be there and be a number")


def _error(raw, field, problem):
    return Fields(example_id_of(raw), raw).error(field, problem, raw.get(field))
