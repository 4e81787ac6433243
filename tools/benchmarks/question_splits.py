"""Questions of HotpotQA's form to train on and to measure on."""

import hashlib
import random

__all__ = ["split", "with_fewer_distractors"]


def split(questions, num_test):
    """(training, test): lists of questions, by the order of their ids' hashes.

    Raises:
        ValueError: if there are no more than `num_test`.
    """
    if len(questions) <= num_test:
        raise ValueError(
            f"`num_test` must be below the number of questions, {len(questions)}. "
            f"Received: {num_test}"
        )
    ordered = sorted(questions, key=lambda x: hashlib.sha256(x["_id"].encode()).digest())
    return ordered[num_test:], ordered[:num_test]


def with_fewer_distractors(questions, distractors, copies):
    """Training questions with the paragraphs of their facts and a few others, in their order.

    Args:
        questions: list of dicts of HotpotQA's form.
        distractors: int. Others of a question, drawn by the hash of its id; 0 for all.
        copies: int. Times that each question is taken; their other paragraphs differ.
    Returns:
        List of dicts, with ids of their own where there are copies.
    """
    return [
        _with_fewer(question, distractors, copy) for copy in range(copies) for question in questions
    ]


def _with_fewer(question, distractors, copy):
    name = f"{question['_id']}-{copy}" if copy else question["_id"]
    right = {title for title, _ in question["supporting_facts"]}
    others = [title for title, _ in question["context"] if title not in right]
    if distractors:
        others = random.Random(name).sample(others, min(distractors, len(others)))
    kept = right.union(others)
    context = [paragraph for paragraph in question["context"] if paragraph[0] in kept]
    return {**question, "_id": name, "context": context}
