"""The official metrics, compared with an obvious twin on answers full of borderline words."""

import collections
import re
import string

import hypothesis
import pytest
from hypothesis import strategies

from etcmodel.tasks.hotpotqa import examples, metrics


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


@hypothesis.settings(derandomize=True, deadline=None, max_examples=200)
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
