"""From logits to answers, and their accuracy."""

import numpy as np
import pytest

from etcmodel.tasks.wikihop import metrics
from etcmodel.tasks.wikihop.examples import WikiHopExample


def example(example_id, *candidates, answer=None):
    return WikiHopExample(example_id, "q", (), candidates, answer)


GOLD = [
    example("1", "Calder ", "ossel", answer="calder"),
    example("2", "a", "b", answer="b"),
    example("3", "a", "b"),
]


def test_the_best_candidate_is_the_answer_whatever_other_tokens_score():
    outputs = [
        {"example_id": b"1", "logits": np.array([2.0, 1.0, 9.0])},
        {"example_id": ["2"], "logits": np.array([1.0, 1.0, 0.0])},
    ]
    assert metrics.predict(outputs, GOLD) == {"1": "Calder ", "2": "a"}
    assert metrics.predict(outputs, GOLD, release_compatible=True) == {"1": "calder", "2": "a"}


def test_accuracy_counts_all_examples_with_an_answer():
    assert metrics.metrics(GOLD, {"1": "CALDER", "2": "b", "3": "a"}) == {"accuracy": 1.0}
    assert metrics.metrics(GOLD, {"1": "Calder ", "2": "a"}) == {"accuracy": 0.5}
    assert metrics.metrics(GOLD, {"2": "b"}) == {"accuracy": 0.5}


def test_a_gold_file_without_answers_is_an_error():
    with pytest.raises(ValueError, match="No example of the gold file has an answer"):
        metrics.metrics(GOLD[2:], {})


def test_records_of_another_file_are_an_error():
    with pytest.raises(ValueError, match="Example '9' of the records is not in the raw file"):
        metrics.predict([{"example_id": b"9", "logits": np.zeros(2)}], GOLD)


def test_examples_with_the_same_id_are_an_error():
    with pytest.raises(ValueError, match="two examples with the id '2'"):
        metrics.predict([], [*GOLD, example("2", "c")])
    with pytest.raises(ValueError, match="two examples with the id '2'"):
        metrics.metrics([*GOLD, example("2", "a", answer="a")], {"2": "a"})


def test_too_few_logits_are_an_error():
    with pytest.raises(ValueError, match="as many as there are logits, 1, or fewer"):
        metrics.predicted_answer(["a", "b"], np.zeros(1))


def test_without_the_raw_file_the_answers_are_those_of_the_records():
    rows = [(0, 0.0, 1), (2, 2.0, 1), (1, 3.0, 1), (0, 0.0, 0)]  # The last one fills up a batch.
    names = ("answer_ids", "label_id", "is_real_example")
    outputs = [dict(zip(names, row, strict=True)) for row in rows]
    assert metrics.record_metrics(outputs) == {"accuracy": pytest.approx(2 / 3)}
    with pytest.raises(ValueError, match="no record to evaluate on"):
        metrics.record_metrics(outputs[3:])
