"""Decodes logits to answers, and computes accuracy (Welbl et al. 2018, WikiHop)."""

import numpy as np

from etcmodel.finetuning import text_of
from etcmodel.preprocessing import raw_files

from .examples import is_same

__all__ = ["metrics", "predict", "predicted_answer", "record_metrics"]


def predicted_answer(candidates, logits):
    """The candidate with the highest logit; the first one in case of a tie.

    Args:
        candidates: list of str, in the order of the global input.
        logits: float [global_len]. Scores of the global tokens, which start with the candidates.

    Returns:
        str. As spelled in `candidates`.

    Raises:
        ValueError: if there are no candidates, or more than logits.
    """
    if not 0 < len(candidates) <= len(logits):
        raise ValueError(
            f"`candidates` must be as many as there are logits, {len(logits)}, or fewer. "
            f"Received: {len(candidates)} candidates"
        )
    return candidates[int(np.argmax(logits[: len(candidates)]))]


def predict(outputs, examples, *, release_compatible=False):
    """The answers of examples.

    Args:
        outputs: iterable of dicts, one an example: `example_id` (str or bytes, scalar or [1]) and
            `logits` (float [global_len]). Outputs with an empty id (padding examples in the
            release's records) are skipped.
        examples: iterable of `WikiHopExample`s, in any order; there may be more of them.
        release_compatible: bool. Give answers stripped and in lower case.

    Returns:
        dict from example id to answer: the official prediction format.

    Raises:
        ValueError: if two examples have the same id; if an output matches no example, or has too
            few logits.
    """
    candidates = {
        example_id: example.normalized_candidates if release_compatible else example.candidates
        for example_id, example in raw_files.by_id(examples).items()
    }
    answers = {}
    for output in outputs:
        example_id = text_of(output["example_id"])
        if not example_id:
            continue
        if example_id not in candidates:
            raise ValueError(f"Example {example_id!r} of the records is not in the raw file.")
        answers[example_id] = predicted_answer(candidates[example_id], output["logits"])
    return answers


def metrics(examples, predictions):
    """Accuracy: the fraction of correct answers, ignoring case and surrounding white space.

    Args:
        examples: iterable of `WikiHopExample`s; those without an answer are left out.
        predictions: dict from example id to answer. A missing answer counts as wrong.

    Returns:
        dict with "accuracy", in [0, 1].

    Raises:
        ValueError: if no example has an answer, or two have the same id.
    """
    answers = {
        example.example_id: example.answer
        for example in raw_files.with_ids_of_their_own(examples)
        if example.answer is not None
    }
    if not answers:
        raise ValueError("No example of the gold file has an answer to compare with.")
    num_right = sum(
        example_id in predictions and is_same(predictions[example_id], answer)
        for example_id, answer in answers.items()
    )
    return {"accuracy": num_right / len(answers)}


def record_metrics(outputs):
    """Accuracy with the answers in the records, as in the release's evaluation.

    Args:
        outputs: iterable of dicts, one a record: scalars `answer_ids`, `label_id` and
            `is_real_example`, which is 0 for a record that only fills up a batch.

    Returns:
        dict with "accuracy", in [0, 1].

    Raises:
        ValueError: if there is no real record.
    """
    is_right = [
        int(output["answer_ids"]) == int(output["label_id"])
        for output in outputs
        if output["is_real_example"]
    ]
    if not is_right:
        raise ValueError("There is no record to evaluate on.")
    return {"accuracy": sum(is_right) / len(is_right)}
