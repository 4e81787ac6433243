"""Shared metrics against slow ones that follow the definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.finetuning import metrics

few = settings(max_examples=150)
decisions = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.tuples(st.booleans(), st.booleans()), min_size=width, max_size=width),
        min_size=1,
        max_size=8,
    )
)
numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3))
pairs_of_numbers = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=9)


def slow_f1(pairs):
    """F1 of (predicted, given) pairs, by precision and recall; None if there is nothing."""
    right = sum(a and b for a, b in pairs)
    predicted, true = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    if not predicted and not true:
        return None
    if not right:
        return 0.0
    precision, recall = right / predicted, right / true
    return 2 * precision * recall / (precision + recall)


@few
@given(decisions)
def test_f1_is_that_of_precision_and_recall(rows):
    table = np.array(rows)  # [examples, labels, (predicted, given)]
    micro, macro = metrics.f1_scores(table[..., 0], table[..., 1])
    every = [pair for row in rows for pair in row]
    assert micro == pytest.approx(slow_f1(every) or 0.0)
    by_label = [slow_f1([row[i] for row in rows]) for i in range(len(rows[0]))]
    known = [x for x in by_label if x is not None]
    assert macro == pytest.approx(sum(known) / len(known) if known else 0.0)


@few
@given(
    st.lists(
        st.tuples(st.one_of(st.sampled_from([0.2, 0.4, 1.0]), st.floats(0.01, 1)), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 5, 15]),
)
def test_calibration_error_is_the_weighted_mean_of_the_gaps(pairs, num_bins):
    edges = np.linspace(0, 1, num_bins + 1)
    slow = 0.0
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        inside = [(p, right) for p, right in pairs if low < p <= high]
        if inside:
            confidence = sum(p for p, _ in inside) / len(inside)
            accuracy = sum(right for _, right in inside) / len(inside)
            slow += len(inside) / len(pairs) * abs(confidence - accuracy)
    confidences, is_right = map(np.array, zip(*pairs, strict=True))
    found = metrics.expected_calibration_error(confidences, is_right, num_bins)
    assert found == pytest.approx(slow, abs=1e-12)


@few
@given(pairs_of_numbers)
def test_ranks_count_what_is_smaller_and_half_of_what_is_equal(pairs):
    values = [x for x, _ in pairs]
    slow = [sum(y < x for y in values) + (sum(y == x for y in values) + 1) / 2 for x in values]
    np.testing.assert_allclose(metrics.ranks(np.array(values)), slow)


@few
@given(pairs_of_numbers)
def test_pearson_is_covariance_by_deviations(pairs):
    x, y = (list(side) for side in zip(*pairs, strict=True))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert metrics.pearson(x, y) == 0.0
        return
    dx, dy = ([v - math.fsum(side) / len(side) for v in side] for side in (x, y))
    scale_x, scale_y = (max(map(abs, side)) for side in (dx, dy))
    if min(scale_x, scale_y) < 1e-6 * max(map(abs, (*x, *y))):
        return  # The deviations are rounding errors.
    dx, dy = [v / scale_x for v in dx], [v / scale_y for v in dy]
    slow = math.fsum(a * b for a, b in zip(dx, dy, strict=True)) / math.sqrt(
        math.fsum(a * a for a in dx) * math.fsum(b * b for b in dy)
    )
    assert metrics.pearson(x, y) == pytest.approx(slow, abs=1e-6)


def test_pearson_and_spearman_of_numbers_by_hand():
    assert metrics.pearson([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert metrics.pearson([1, 2, 3], [1, 0, 2]) == pytest.approx(0.5)
    x, y = [1, 10, 100], [3, 2, 1]
    assert metrics.pearson(metrics.ranks(x), metrics.ranks(y)) == pytest.approx(-1)


def test_probabilities_of_any_logits_are_finite():
    np.testing.assert_allclose(
        metrics.softmax([[1000.0, 1000.0], [-1000.0, 0.0]]), [[0.5] * 2, [0, 1]]
    )
    np.testing.assert_allclose(metrics.sigmoid([-1000.0, 0.0, 1000.0]), [0, 0.5, 1])
