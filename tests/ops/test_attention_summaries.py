"""Probabilities in short are those of all pairs, ordered or added up."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from etcmodel.ops import attention_summaries, blockwise
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.reach import Window
from etcmodel.ops.tiles import Tiling
from tests.ops.blockwise_cases import BATCH, CASES, EXAMPLES, TILING, cases, tilings


def joined_probs(case):
    """[batch, num_rows, num_heads, all keys]."""
    of_sets = blockwise.attention_probs(case.queries, case.key_sets, scale=case.scale)
    return np.transpose(tf.concat(of_sets, -1), [0, 2, 1, 3])


def check_top(keys, probs, expected):
    """Keys and probabilities are the highest of `expected`, [batch, num_rows, all keys]."""
    keys, probs = np.array(keys), np.array(probs)
    size = keys.shape[-1]
    highest = np.pad(-np.sort(-expected, -1), [[0, 0], [0, 0], [0, size]])[..., :size]
    np.testing.assert_allclose(probs, highest, atol=1e-5)
    there = keys >= 0
    np.testing.assert_array_equal(there, probs > 0)
    of_keys = np.take_along_axis(expected, np.maximum(keys, 0), -1)
    np.testing.assert_allclose(np.where(there, of_keys, 0), probs, atol=1e-5)
    for row in keys.reshape(-1, size):
        assert len(set(row[row >= 0])) == (row >= 0).sum()


@EXAMPLES
@given(cases(), tilings, st.integers(1, 40))
def test_the_keys_of_a_query_are_the_most_probable_of_all(case, tiling, most_keys):
    found = attention_summaries.top_probs(
        case.queries, case.key_sets, most_keys, scale=case.scale, tiling=tiling
    )
    check_top(*found, joined_probs(case).mean(2))


@EXAMPLES
@given(cases(), tilings, st.integers(0, 1 << 16))
def test_what_queries_look_at_together_is_the_sum_of_all_pairs(case, tiling, seed):
    weights = np.random.default_rng(seed).uniform(size=case.queries.shape[:2]).astype(np.float32)
    found = attention_summaries.mean_probs(
        case.queries, case.key_sets, weights, scale=case.scale, tiling=tiling
    )
    expected = np.einsum("brhk,br->bhk", joined_probs(case), weights)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", CASES)
def test_both_are_the_same_in_a_graph(name):
    case = CASES[name]
    weights = np.eye(1, case.queries.shape[1], 1, dtype=np.float32).repeat(BATCH, 0)

    @tf.function(autograph=False)
    def summaries():
        top = attention_summaries.top_probs(case.queries, case.key_sets, 5, tiling=TILING)
        return top, attention_summaries.mean_probs(
            case.queries, case.key_sets, weights, tiling=TILING
        )

    top, mean = summaries()
    expected = joined_probs(case)
    check_top(*top, expected.mean(2))
    np.testing.assert_allclose(mean, expected[:, 1], atol=1e-5)


def tensors_of(graph):
    """All tensors of a graph and of the functions in it."""
    for operation in graph.get_operations():
        yield from operation.outputs
    for function in graph._functions.values():
        yield from tensors_of(function.graph)


def test_no_tensor_is_as_large_as_all_pairs():
    length, heads, radius = 4096, 2, 16
    vectors, global_keys = tf.zeros([1, length, heads, 4]), tf.zeros([1, 32, heads, 4])
    key_sets = [
        KeySet(vectors, vectors, Window(radius, radius)),
        KeySet(global_keys, global_keys),
    ]
    tiling = Tiling(rows=16, logits=1 << 14)

    @tf.function(autograph=False)
    def summaries(weights):
        top = attention_summaries.top_probs(vectors, key_sets, 4, tiling=tiling)
        return top, attention_summaries.mean_probs(vectors, key_sets, weights, tiling=tiling)

    graph = summaries.get_concrete_function(tf.TensorSpec([1, length])).graph
    sizes = [x.shape.num_elements() for x in tensors_of(graph)]
    # Queries, keys and values have most elements; all pairs within reach are far more.
    assert max(size for size in sizes if size) <= 2 * (length + 2 * radius) * heads * 4
    assert length * heads * (2 * radius + 1 + 32) > 4 * length * heads * 4
