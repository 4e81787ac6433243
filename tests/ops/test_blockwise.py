"""Attention over any sets of keys equals the plain one, however it is cut and computed."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import blockwise
from etcmodel.ops.tiles import Tiling
from tests.ops import blockwise_cases, plain_key_sets
from tests.ops.blockwise_cases import (
    BATCH,
    CASES,
    EXAMPLES,
    HEADS,
    TILING,
    assert_close,
    cases,
    run,
    tilings,
)


@settings(EXAMPLES, max_examples=60)
@given(cases(), tilings)
def test_outputs_and_gradients_are_those_of_plain_attention(case, tiling):
    assert_close(run(case, tiling=tiling), run(case, plain_key_sets.attend))


@EXAMPLES
@given(cases())
def test_probabilities_are_those_that_the_values_are_weighed_by(case):
    of_sets = blockwise.attention_probs(case.queries, case.key_sets, scale=case.scale)
    joined = tf.transpose(tf.concat(of_sets, -1), [0, 2, 1, 3])
    plain = plain_key_sets.probs(case.queries, case.key_sets, scale=case.scale)
    np.testing.assert_allclose(joined, plain, atol=1e-5)
    output = blockwise.attend(
        case.queries, case.key_sets, scale=case.scale, tiling=Tiling(rows=3, logits=300)
    )
    weighed = plain_key_sets.outputs(tf.cast(joined, tf.float64), case.key_sets)
    np.testing.assert_allclose(output, weighed, atol=1e-5)


@EXAMPLES
@given(cases(), tilings, st.data())
def test_probabilities_of_some_rows_are_those_of_all_pairs(case, tiling, data):
    num_rows = case.queries.shape[1]
    rows = data.draw(st.lists(st.integers(0, num_rows - 1), unique=True))
    of_sets = blockwise.attention_probs(case.queries, case.key_sets, scale=case.scale)
    seen = []
    steps = blockwise.probs_of_steps(
        case.queries, case.key_sets, rows, scale=case.scale, tiling=tiling
    )
    for positions, by_set in steps:
        seen += positions.tolist()
        for (keys, probs), expected in zip(by_set, of_sets, strict=True):
            whole = np.zeros([len(positions), *expected.shape[:2], expected.shape[3]])
            for row, column in np.argwhere((keys >= 0) & (keys < whole.shape[-1])):
                whole[row, ..., keys[row, column]] += probs[row, ..., column]
            expected = np.transpose(expected, [2, 0, 1, 3])[positions]
            np.testing.assert_allclose(whole, expected, atol=1e-5)
    assert sorted(seen) == sorted(rows)


def test_no_more_logits_exist_at_a_time_for_some_rows_than_for_the_outputs():
    case = CASES["window"]
    size = 2 * BATCH * HEADS * 4 * 20  # Two tiles, of rows times their keys.
    tiling = Tiling(rows=4, logits=size)
    rows = range(case.queries.shape[1])
    steps = [*blockwise.probs_of_steps(case.queries, case.key_sets, rows, tiling=tiling)]
    assert len(steps) > 2
    for _, by_set in steps:
        assert sum(probs.size for _, probs in by_set) <= size


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow_cases(1)
def test_every_reach_is_the_same_in_a_graph(name):
    assert_close(
        tf.function(functools.partial(run, CASES[name], tiling=TILING), autograph=False)(),
        blockwise_cases.expected(name),
    )
