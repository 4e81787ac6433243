"""Answers of generated tokens, and how many are right."""

import numpy as np

from etcmodel.finetuning import text_of
from etcmodel.preprocessing.raw_files import by_id
from etcmodel.text import number_pieces, vocabulary

__all__ = ["answer_of", "metrics", "prediction"]


def answer_of(sequence, tokenizer):
    """The text of generated tokens: str.

    Args:
        sequence: int [length]. The start token first; after the end token nothing counts.
        tokenizer: `FullTokenizer` of word pieces.
    """
    known = vocabulary.known_ids(sequence[1:], tokenizer.inv_vocab)
    found = tokenizer.convert_ids_to_tokens(known)
    if number_pieces.END in found:
        found = found[: found.index(number_pieces.END)]
    return number_pieces.text_of_pieces(found)


def prediction(output, tokenizer):
    """The answer of an example.

    Args:
        output: dict of NumPy arrays: `example_id` and int `sequences` [length].
        tokenizer: `FullTokenizer` of word pieces.
    Returns:
        dict of `id` and `prediction`: str.
    """
    answer = answer_of(output["sequences"].tolist(), tokenizer)
    return {"id": text_of(output["example_id"]), "prediction": answer}


def metrics(examples, predictions):
    """The share of answers that are right in every digit, white space and case apart.

    Args:
        examples: list of `Example`s with answers.
        predictions: dict of id to str. What is not there is wrong.
    Returns:
        dict of floats in [0, 1]: "exact_match", and "exact_match_<kind>" for each kind of question
        that the examples name.
    Raises:
        ValueError: if an example has no answer, two have one id, or there is none.
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
