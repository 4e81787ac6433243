"""Attention over any sets of keys equals the plain one, however it is cut and computed."""

import functools
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from etcmodel.ops import blockwise, key_sets, labels, masks, pair_values, reach
from etcmodel.ops.tiles import Tiling, heads_together
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


@EXAMPLES
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


def test_a_set_without_keys_changes_nothing():
    rng = np.random.default_rng(0)
    queries, keys, values, none, table = (
        tf.constant(rng.normal(size=shape), tf.float32)
        for shape in (*[[2, 9, 2, 4]] * 3, [2, 0, 2, 4], [5, 2, 4])
    )
    tables = labels.LabelTables(table, tf.zeros([5, 2]))
    ids = labels.IdLabels(tables, pair_values.Dense(tf.zeros([2, 9, 0], tf.int32)))
    segments = tf.constant(rng.integers(0, 2, [2, 9]))
    window = reach.Window(8, 8)  # As far as there are keys.
    mask = masks.SegmentMask(segments, segments)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([queries, keys, values, none, table])
        alone = key_sets.KeySet(keys, values, window, (mask,))
        empty = key_sets.KeySet(none, none, labels=ids)
        expected = plain_key_sets.attend(queries, [alone])
        outputs = [blockwise.attend(queries, sets) for sets in ([alone, empty], [empty, alone])]
    sources = [queries, keys, values]
    wanted = tape.gradient(expected, sources, expected)
    for output in outputs:
        assert_close([output, *tape.gradient(output, sources, output)], [expected, *wanted])
        of_none, of_table = tape.gradient(output, [none, table], output)
        assert of_none.shape == none.shape and not of_table.numpy().any()


class Backwards(reach.Window):
    """The keys of the window that are not behind the query."""

    def sees(self, queries, keys):
        return super().sees(queries, keys) & (keys <= queries)


@pytest.mark.parametrize("shape", [(1, 9, 2, 4), (2, 8, 2, 4), (2, 9, 1, 4), (2, 9, 2, 5)])
def test_a_sets_own_queries_are_shaped_as_the_calls(shape):
    queries, own = tf.ones([2, 9, 2, 4]), tf.ones(shape)
    turned = key_sets.KeySet(tf.ones([*shape[:1], 9, *shape[2:]]), queries, queries=own)
    message = (
        r"^`KeySet.queries` must have shape \[batch, num_rows, num_heads, size_per_head\], here "
        rf"\[2, 9, 2, 4\]. Received shape: {re.escape(str([*shape]))}$"
    )
    sets = [key_sets.KeySet(queries, queries), turned]
    for attend in (blockwise.attend, blockwise.attention_probs):
        for run_once in (attend, tf.function(lambda x, _, attend=attend: attend(x, sets))):
            with pytest.raises(ValueError, match=message):
                run_once(queries, sets if run_once is attend else None)


def test_a_window_over_all_keys_has_what_its_kind_sees():
    queries, values = tf.zeros([1, 4, 1, 8]), tf.eye(4)[None, :, None]
    output = blockwise.attend(queries, [key_sets.KeySet(queries, values, Backwards(4, 4))])
    np.testing.assert_allclose(output[0, :, 0], np.tri(4) / [[1], [2], [3], [4]], atol=1e-6)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("is_known", [True, False])
def test_few_heads_at_a_time_are_all_heads(is_known):
    rng = np.random.default_rng(0)
    queries, keys, values = (
        tf.constant(rng.normal(size=[2, length, 6, 4]), tf.float32) for length in (10, 14, 14)
    )
    mask = masks.KeyMask(tf.constant(rng.integers(0, 2, [2, 14])))
    of_queries, of_keys = (tf.constant(rng.integers(0, 2, [2, length])) for length in (10, 14))
    segments = masks.SegmentMask(of_queries, of_keys)  # A bias of each pair.
    tiling = Tiling(logits=2 * 2 * 10 * 14)  # Two heads of both examples.
    assert heads_together(6, 2, 10, 14, tiling) == 2

    def attend(*tensors, **options):
        queries, keys, values = tensors
        sets = [key_sets.KeySet(keys, values, masks=(mask, segments))]
        tf.random.set_seed(1)
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            outputs = blockwise.attend(queries, sets, **options)
        return outputs, *tape.gradient(outputs, tensors, outputs)

    shape = [2, None if not is_known else 10, 6, 4]
    keys_shape = [2, None if not is_known else 14, 6, 4]
    signature = [tf.TensorSpec(x) for x in (shape, keys_shape, keys_shape)]
    graph = tf.function(
        functools.partial(attend, tiling=tiling), input_signature=signature, autograph=False
    )
    assert_close(graph(queries, keys, values), attend(queries, keys, values))

    # What dropout leaves is linear in the values, so that gradient and output have one product.
    dropped = functools.partial(attend, tiling=tiling, dropout_rate=0.5)
    outputs, *_, of_values = tf.function(dropped, input_signature=signature, autograph=False)(
        queries, keys, values
    )
    np.testing.assert_allclose(
        tf.reduce_sum(of_values * values), tf.reduce_sum(outputs**2), rtol=1e-5
    )


@given(st.integers(1, 24), st.integers(1, 9), st.integers(1, 9999), st.integers(1, 9999), tilings)
def test_steps_of_few_heads_are_as_large_as_allowed(num_heads, batch, num_rows, num_keys, tiling):
    heads = heads_together(num_heads, batch, num_rows, num_keys, tiling)
    sizes = [tf.constant(x) for x in (batch, num_rows, num_keys)]
    assert heads == int(heads_together(num_heads, *sizes, tiling))
    if tiling.rows is not None:
        assert heads == num_heads
        return
    of_one = batch * min(num_rows, 512) * num_keys
    fit = [n for n in range(1, num_heads + 1) if num_heads % n == 0 and n * of_one <= tiling.logits]
    assert heads == max(fit, default=1)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow_cases(1)
def test_every_reach_is_the_same_in_a_graph(name):
    assert_close(
        tf.function(functools.partial(run, CASES[name], tiling=TILING), autograph=False)(),
        blockwise_cases.expected(name),
    )
