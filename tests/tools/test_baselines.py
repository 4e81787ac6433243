"""The baselines answer in the official format, and do not do well on the invented questions."""

import collections

import pytest

from etcmodel.tools import demo_hotpotqa
from etcmodel.tools.baselines import (
    BASELINES,
    first_sentences,
    most_frequent_answer,
    most_frequent_by_question_word,
)

TRAIN = [
    {"_id": "1", "question": "Who sang?", "answer": "Ada"},
    {"_id": "2", "question": "Who ran?", "answer": "Ada"},
    {"_id": "3", "question": "Is it red?", "answer": "no"},
    {"_id": "4", "question": "Is it old?", "answer": "no"},
    {"_id": "5", "question": "Is it big?", "answer": "yes"},
    {"_id": "6", "question": "Are they?", "answer": "no"},
]
CONTEXT = [["A", ["One.", "Two."]], ["Empty", []], ["B", ["Three."]]]


def example(question, name="x"):
    return {"_id": name, "question": question, "context": CONTEXT}


def answer_f1(prediction, gold):
    """SQuAD-style F1 of lower-case words; yes and no count only as a whole."""
    words, gold_words = prediction.lower().split(), gold.lower().split()
    if words != gold_words and {prediction, gold} & {"yes", "no"}:
        return 0.0
    common = sum((collections.Counter(words) & collections.Counter(gold_words)).values())
    return 2 * common / (len(words) + len(gold_words))


class TestPredictions:
    def test_first_sentences_skips_empty_paragraphs(self):
        assert first_sentences(example("Who?")) == [["A", 0], ["B", 0]]

    def test_most_frequent_answer_ignores_the_question(self):
        predictions = most_frequent_answer(TRAIN, [example("Who is it?"), example("Is it?", "y")])
        assert predictions == {
            "answer": {"x": "no", "y": "no"},
            "sp": {"x": [["A", 0], ["B", 0]], "y": [["A", 0], ["B", 0]]},
        }

    @pytest.mark.parametrize(
        ("question", "answer"),
        [("WHO is it?", "Ada"), ("Is it?", "no"), ("Why?", "no"), ("", "no")],
    )
    def test_question_word_decides_where_training_has_it(self, question, answer):
        predictions = most_frequent_by_question_word(TRAIN, [example(question)])
        assert predictions["answer"] == {"x": answer}

    def test_equally_frequent_answers_are_taken_in_alphabetical_order(self):
        tied = [{"question": "Q?", "answer": answer} for answer in ("b", "a", "b", "a")]
        assert most_frequent_answer(tied, [example("Q?")])["answer"] == {"x": "a"}

    @pytest.mark.parametrize("baseline", BASELINES.values())
    def test_training_examples_are_needed(self, baseline):
        with pytest.raises(ValueError, match="train_examples"):
            baseline([], [example("Who?")])


@pytest.mark.parametrize("baseline", BASELINES.values())
def test_invented_questions_need_reading(baseline):
    train, dev = (
        demo_hotpotqa.make_examples(split=split, num_examples=num_examples, seed=0)
        for split, num_examples in (("train", 1000), ("dev", 300))
    )
    answers = baseline(train, dev)["answer"]
    total = sum(answer_f1(answers[question["_id"]], question["answer"]) for question in dev)
    assert total / len(dev) < 0.35
