"""TriviaQA's official metrics: exact match and F1, the best over all aliases of the answer.

Source: Joshi et al. 2017 (arXiv:1705.03551), section 5.3, and the official script
`triviaqa_evaluation.py`, whose numbers these are (in [0, 1], not percent).
"""

from etcmodel.finetuning import metrics as metrics_lib
from etcmodel.preprocessing import raw_files

from .answers import normalize_answer

__all__ = ["answer_score", "metrics"]


def answer_score(prediction, answers):
    """(exact match, F1) of a predicted answer: floats in [0, 1].

    Args:
        prediction: str.
        answers: sequence of str. All correct answers; not empty.
    """
    predicted = normalize_answer(prediction)
    right = [normalize_answer(answer) for answer in answers]
    overlaps = (metrics_lib.word_overlap(predicted.split(), x.split()) for x in right)
    return float(predicted in right), max(f1 for f1, _, _ in overlaps)


def metrics(gold, predictions, by_document=False):
    """The mean scores over all questions; one without a prediction scores 0.

    Args:
        gold: iterable of `TriviaQaExample` with answers.
        predictions: dict of `TriviaQaExample.keys` to the answers, str.
        by_document: bool. Score each pair of question and document, as the script does for the web.
    Returns:
        dict of float: `em`, `f1`, and `answered`, the fraction with a prediction; and the same with
        the prefix `verified_`, for verified questions (and documents) only, if there are any.
    Raises:
        ValueError: if there is no question, one has no answer, or two have the same id.
    """
    scores, verified = [], []
    for example in raw_files.by_id(gold).values():
        if example.answers is None:
            raise ValueError(
                f"example {example.example_id!r}: field `Answer` is missing, and evaluation needs "
                "it. Give a gold file with answers."
            )
        for key, is_verified in example.keys(by_document).items():
            told = predictions.get(key)
            score = (0.0,) * 3 if told is None else (*answer_score(told, example.answers), 1.0)
            scores.append(score)
            verified += [score] * is_verified
    if not scores:
        raise ValueError("There is no gold example to evaluate on.")
    named = {"": scores, "verified_": verified} if verified else {"": scores}
    return {
        f"{part}{name}": sum(column) / len(rows)
        for part, rows in named.items()
        for name, column in zip(("em", "f1", "answered"), zip(*rows, strict=True), strict=True)
    }
