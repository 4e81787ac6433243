"""What one scores on HotpotQA's format without reading: the least that a model has to beat.

Every function returns predictions in the official format,
`{"answer": {id: str}, "sp": {id: [[title, sentence index], …]}}`.
"""

import collections

__all__ = ["BASELINES", "first_sentences", "most_frequent_answer", "most_frequent_by_question_word"]


def first_sentences(example):
    """Takes the first sentence of each paragraph that has one for a supporting fact."""
    return [[title, 0] for title, sentences in example["context"] if sentences]


def _answers(train_examples):
    """The training answers, of which there must be one at least."""
    if not train_examples:
        raise ValueError(f"`train_examples` must not be empty. Received: {train_examples=}")
    return [example["answer"] for example in train_examples]


def _most_frequent(answers):
    """The most frequent answer; of equally frequent ones, the first in the alphabet."""
    counts = collections.Counter(answers)
    return min(counts, key=lambda answer: (-counts[answer], answer))


def _question_word(example):
    """The first word, which mostly tells the kind of answer ("Who", "When", "Are")."""
    return " ".join(example["question"].lower().split()[:1])


def _predictions(examples, answer_to):
    """Official predictions with the first sentences as supporting facts."""
    return {
        "answer": {example["_id"]: answer_to(example) for example in examples},
        "sp": {example["_id"]: first_sentences(example) for example in examples},
    }


def most_frequent_answer(train_examples, examples):
    """Answers every question with the most frequent answer of the training examples.

    Args:
        train_examples: list of HotpotQA examples with answers; at least one.
        examples: list of HotpotQA examples to predict.
    Returns:
        dict. Official predictions.
    Raises:
        ValueError: if `train_examples` is empty.
    """
    answer = _most_frequent(_answers(train_examples))
    return _predictions(examples, lambda unused_example: answer)


def most_frequent_by_question_word(train_examples, examples):
    """Like `most_frequent_answer`, but among training questions with the same first word.

    A first word that no training question has gets the most frequent answer of all.
    """
    answers_by_word = collections.defaultdict(list)
    for example, answer in zip(train_examples, _answers(train_examples), strict=True):
        answers_by_word[_question_word(example)].append(answer)
    fallback = _most_frequent(_answers(train_examples))
    best = {word: _most_frequent(answers) for word, answers in answers_by_word.items()}
    return _predictions(examples, lambda example: best.get(_question_word(example), fallback))


BASELINES = {
    "most frequent answer": most_frequent_answer,
    "most frequent answer by question word": most_frequent_by_question_word,
}
