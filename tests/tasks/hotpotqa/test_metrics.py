"""The official metrics, and counts by kind of answer."""

import collections
import dataclasses
import re
import string

import hypothesis
import pytest
from hypothesis import strategies

from etcmodel.tasks.hotpotqa import examples, metrics


class TestMetrics:
    def gold(self, answer="the Red Rose", facts=(("Rose", 0), ("Town", 0))):
        return [
            examples.HotpotQAExample(
                "q1", "?", (), answer, tuple(examples.SupportingFact(*fact) for fact in facts)
            )
        ]

    def test_a_perfect_prediction_scores_one_everywhere(self):
        prediction = {"answer": {"q1": "red rose!"}, "sp": {"q1": [["Town", 0], ["Rose", 0]]}}
        assert set(metrics.metrics(self.gold(), prediction).values()) == {1.0}

    def test_partial_overlap(self):
        prediction = {"answer": {"q1": "red"}, "sp": {"q1": [["Rose", 0]]}}
        scores = metrics.metrics(self.gold(), prediction)
        assert (scores["em"], scores["prec"], scores["recall"]) == (0, 1, 0.5)
        assert (scores["sp_em"], scores["sp_prec"], scores["sp_recall"]) == (0, 1, 0.5)
        assert scores["joint_recall"] == 0.25
        assert scores["joint_f1"] == pytest.approx(2 * 0.25 / 1.25)

    def test_missing_predictions_score_zero(self):
        scores = metrics.metrics(self.gold(), {"answer": {"q1": "red rose"}, "sp": {}})
        assert (scores["em"], scores["sp_em"], scores["joint_em"]) == (1, 0, 0)

    def test_yes_is_not_partly_right(self):
        assert metrics.f1_score("yes it is", "yes") == (0, 0, 0)

    def test_metrics_need_labeled_examples(self):
        with pytest.raises(ValueError, match="no gold example"):
            metrics.metrics([], {"answer": {}, "sp": {}})
        unlabeled = examples.HotpotQAExample("q1", "?", ())
        without_facts = dataclasses.replace(unlabeled, answer="rose")
        for example, field in ((unlabeled, "answer"), (without_facts, "supporting_facts")):
            message = f"example 'q1': field `{field}` is missing, and evaluation needs it"
            for gold in ([example], [*self.gold(), example]):
                with pytest.raises(ValueError, match=message):
                    metrics.metrics(gold, {"answer": {}, "sp": {}})
                with pytest.raises(ValueError, match=message):
                    metrics.exact_match_counts(gold, {"answer": {}})

    def test_counts_by_kind(self):
        gold = self.gold() + self.gold() + self.gold(answer="no")
        counts = metrics.exact_match_counts(gold, {"answer": {"q1": "yes"}})
        assert counts == {
            "counts/A_Y": 2.0,
            "counts/N_Y": 1.0,
            "percentages/A_Y": 1.0,
            "percentages/N_Y": 1.0,
        }

    @pytest.mark.parametrize(
        ("answer", "predicted", "kinds"),
        [
            # Without its articles nothing is left of the true answer: it still is a span.
            ("The The", "the", "A_A"),
            ("The The", "", "A_A"),
            ("A", "rock", "A_B"),
            ("A", "no", "A_N"),
            ("!", "Yes.", "A_Y"),
            ("Red Rose", "the red rose!", "A_A"),
            ("Red Rose", "rose", "A_B"),
            ("Red Rose", "the", "A_E"),
            ("Red Rose", None, "A_E"),
            ("noanswer", "noanswer", "A_A"),
            ("Yes", "yes!", "Y_Y"),
            ("Yes", "the no", "Y_N"),
            ("Yes", "rose", "Y_A"),
            ("Yes", "an", "Y_E"),
            ("no", "no", "N_N"),
            ("no", "no way", "N_A"),
        ],
    )
    def test_kinds_of_answers(self, answer, predicted, kinds):
        answers = {} if predicted is None else {"q1": predicted}
        counts = metrics.exact_match_counts(self.gold(answer=answer), {"answer": answers})
        assert counts == {f"counts/{kinds}": 1.0, f"percentages/{kinds}": 1.0}


def obvious_words(text):
    """The words that count, as the official script has it: no case, ASCII punctuation, articles."""
    kept = "".join(char for char in text.lower() if char not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def obvious_overlap(predicted, true):
    """(F1, precision, recall) of two lists, each item counted as often as it is in both."""
    left = list(true)
    num_common = 0
    for item in predicted:
        if item in left:
            left.remove(item)
            num_common += 1
    if num_common == 0:
        return 0, 0, 0
    precision, recall = num_common / len(predicted), num_common / len(true)
    return 2 * precision * recall / (precision + recall), precision, recall


def obvious_scores(answer, true_answer, facts, true_facts):
    """All metrics of one example."""
    words, true_words = obvious_words(answer), obvious_words(true_answer)
    f1, precision, recall = obvious_overlap(words, true_words)
    closed = (["yes"], ["no"], ["noanswer"])
    if words != true_words and (words in closed or true_words in closed):
        f1 = precision = recall = 0
    em = float(words == true_words)
    facts, true_facts = sorted(set(facts)), sorted(set(true_facts))
    sp_f1, sp_precision, sp_recall = obvious_overlap(facts, true_facts)
    sp_em = float(facts == true_facts)
    joint_precision, joint_recall = precision * sp_precision, recall * sp_recall
    both = joint_precision + joint_recall
    joint_f1 = 2 * joint_precision * joint_recall / both if both else 0
    scores = {
        "": (em, f1, precision, recall),
        "sp_": (sp_em, sp_f1, sp_precision, sp_recall),
        "joint_": (em * sp_em, joint_f1, joint_precision, joint_recall),
    }
    names = ("em", "f1", "prec", "recall")
    return {
        prefix + name: value
        for prefix, values in scores.items()
        for name, value in zip(names, values, strict=True)
    }


ANSWERS = strategies.lists(
    strategies.sampled_from(
        ["yes", "No", "noanswer", "the", "A", "an", "red", "Rose", "rose!", "-", "“rose”", "Écran"]
    ),
    max_size=4,
).map(" ".join)
FACTS = strategies.lists(
    strategies.tuples(strategies.sampled_from(["Rose", "rose"]), strategies.integers(0, 2)),
    max_size=4,
)
QUESTIONS = strategies.lists(
    strategies.tuples(ANSWERS, strategies.none() | ANSWERS, FACTS, strategies.none() | FACTS),
    min_size=1,
    max_size=4,
)


@hypothesis.settings(max_examples=200)
@hypothesis.given(questions=QUESTIONS)
def test_metrics_are_those_of_an_obvious_twin(questions):
    gold, prediction = [], {"answer": {}, "sp": {}}
    expected = collections.Counter()
    for index, (true_answer, answer, true_facts, facts) in enumerate(questions):
        example_id = f"q{index}"
        labels = (true_answer, tuple(examples.SupportingFact(*fact) for fact in true_facts))
        gold.append(examples.HotpotQAExample(example_id, "?", (), *labels))
        if answer is not None:
            prediction["answer"][example_id] = answer
        if facts is not None:
            prediction["sp"][example_id] = [list(fact) for fact in facts]
        scores = obvious_scores(answer or "", true_answer, facts or [], true_facts)
        for name, score in scores.items():
            is_of_facts, is_joint = name.startswith("sp_"), name.startswith("joint_")
            has_answer, has_facts = answer is not None, facts is not None
            counts = has_facts if is_of_facts else has_answer and (has_facts or not is_joint)
            expected[name] += score / len(questions) if counts else 0
    assert metrics.metrics(gold, prediction) == pytest.approx(dict(expected), abs=1e-9)
    counts = metrics.exact_match_counts(gold, prediction)
    numbers = {name: number for name, number in counts.items() if name.startswith("counts/")}
    assert sum(numbers.values()) == len(questions)
    for kind in {name[len("counts/")] for name in numbers}:
        shares = [share for name, share in counts.items() if f"percentages/{kind}_" in name]
        assert sum(shares) == pytest.approx(1)
