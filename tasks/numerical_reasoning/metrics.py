"""Answers from generated tokens, and their exact match."""

import numpy as np

from etcmodel.finetuning import text_of
from etcmodel.preprocessing.raw_files import by_id
from etcmodel.text import number_pieces, vocabulary

__all__ = ["answer_of", "metrics", "prediction"]


def answer_of(sequence, tokenizer):
    """The text of generated tokens: str.

    Args:
        sequence: int [length]. Begins with the start token; everything after the end token is
            ignored.
        tokenizer: `FullTokenizer` of word pieces.
    """
    known = vocabulary.known_ids(sequence[1:], tokenizer.inv_vocab)
    found = tokenizer.convert_ids_to_tokens(known)
    if number_pieces.END in found:
        found = found[: found.index(number_pieces.END)]
    return number_pieces.text_of_pieces(found)


def prediction(output, tokenizer):
    """The predicted answer of an example.

    Args:
        output: dict of NumPy arrays: `example_id` and int `sequences` [length].
        tokenizer: `FullTokenizer` of word pieces.
    Returns:
        dict of `id` and `prediction`: str.
    """
    answer = answer_of(output["sequences"].tolist(), tokenizer)
    return {"id": text_of(output["example_id"]), "prediction": answer}


def metrics(examples, predictions):
    """The fraction of answers that are fully correct, ignoring white space and case.

    Args:
        examples: list of `Example`s with answers.
        predictions: dict from id to str. Missing predictions are wrong.
    Returns:
        dict of floats in [0, 1]: "exact_match", and "exact_match_<kind>" for each kind of question
        among the examples.
    Raises:
        ValueError: if there is no example, one has no answer, or two have the same id.
    """
    examples = list(by_id(examples).values())
    if not examples:
        raise ValueError("There is no example to evaluate.")
    rights = {"exact_match": []}
    for example in examples:
        if example.answer is None:
            raise ValueError(
                f"example {example.example_id!r}: field `answer` is missing, so nothing is measured"
            )
        is_right = _plain(predictions.get(example.example_id, "")) == _plain(example.answer)
        rights["exact_match"].append(is_right)
        if example.kind:
            rights.setdefault(f"exact_match_{example.kind}", []).append(is_right)
    return {name: float(np.mean(found)) for name, found in sorted(rights.items())}


def _plain(text):
    return "".join(text.lower().split())
