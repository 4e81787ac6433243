"""Attention in blocks against FACTS of the pattern, written pair by pair."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import block_sparse, tiles


def counted(query, key, num_blocks, size, plan, num_random):
    """How often a key counts for a query."""
    row, block = query // size, key // size
    if row in (0, num_blocks - 1):
        return 1
    named = {0, row - 1, row, row + 1, num_blocks - 1}
    others = [0] * num_random if plan is None else list(plan[row - 1])
    return (block in named) + others.count(block)


def slow(queries, keys, values, size, plan, mask, num_random):
    """One head of one text, in float64."""
    length = len(queries)
    num_blocks = -(-length // size)
    outputs = np.zeros([length, values.shape[-1]])
    for query in range(length):
        weights = np.zeros(length)
        for key in range(length):
            count = counted(query, key, num_blocks, size, plan, num_random)
            logit = queries[query] @ keys[key] / np.sqrt(queries.shape[-1])
            weights[key] = count * mask[key] * np.exp(logit)
        if mask[query]:
            outputs[query] = weights @ values / weights.sum()
    return outputs


@st.composite
def problems(draw):
    size, num_random = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    length = block_sparse.longest_full(size, num_random) + draw(st.integers(1, 3 * size))
    num_blocks = -(-length // size)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    plan = None
    if draw(st.booleans()):
        plan = rng.integers(0, num_blocks, [2, num_blocks - 2, num_random])
    mask = rng.random([2, length]) < 0.8 if draw(st.booleans()) else None
    heads = rng.normal(size=[3, 2, length, 2, 3]).astype(np.float32)
    return heads, size, num_random, plan, mask


@given(problems())
@settings(max_examples=25)
def test_it_is_the_pattern_pair_by_pair(problem):
    heads, size, num_random, plan, mask = problem
    blocks = None if plan is None else tf.constant(plan, tf.int32)
    found = block_sparse.attend(
        *map(tf.constant, heads), size, num_random, random_blocks=blocks, token_mask=mask
    )
    ones = np.ones(heads.shape[1:3], bool)
    for text in range(2):
        for head in range(2):
            one = [x[text, :, head].astype(np.float64) for x in heads]
            of_head = None if plan is None else plan[head]
            real = (ones if mask is None else mask)[text]
            expected = slow(*one, size, of_head, real, num_random)
            np.testing.assert_allclose(found[text, :, head], expected, atol=1e-5)


def dense(queries, keys, values, counts, mask=None):
    probs = block_sparse.attention_probs(queries, keys, counts, mask)
    weights = probs * tf.cast(counts, tf.float32)
    attended = tf.einsum("bhqk,bkhs->bqhs", weights, values)
    if mask is None:
        return attended
    return tf.where(mask[:, :, tf.newaxis, tf.newaxis], attended, 0.0)


@pytest.mark.parametrize("lengths", [None, [40, 31, 9]])
@pytest.mark.parametrize("seed", [None, 0])
def test_gradients_are_those_of_all_pairs(lengths, seed):
    rng = np.random.default_rng(0)
    heads = [tf.constant(rng.normal(size=[3, 40, 2, 4]), tf.float32) for _ in range(3)]
    mask = tf.sequence_mask([40, 31, 9], 40)
    pattern = {"lengths": None if lengths is None else tf.constant(lengths)}
    if seed is not None:
        pattern["random_blocks"] = block_sparse.seeded_blocks(seed, 2, 4, 1, 64, 40)
    factors = tf.constant(rng.normal(size=[3, 40, 2, 4]), tf.float32)
    factors *= tf.cast(mask, tf.float32)[:, :, tf.newaxis, tf.newaxis]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(heads)
        sparse = block_sparse.attend(*heads, 4, 1, token_mask=mask, **pattern)
        counts = block_sparse.pair_counts(40, 4, 1, **pattern)
        full = dense(*heads, counts, mask)
        losses = [tf.reduce_sum(x * factors) for x in (sparse, full)]
    for one, other in zip(*(tape.gradient(x, heads) for x in losses), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "compiled"),
    [(None, None), (0, None), (0, False), (None, True), (None, False), (0, True)],
)
def test_lengths_need_no_mask(seed, compiled):
    """Eagerly, and in graphs that do not know the length."""

    def attend(heads, pattern):
        return block_sparse.attend(*heads, 4, 1, **pattern)

    if compiled is not None:
        pattern = {"lengths": tf.TensorSpec([2], tf.int32)}
        if seed is not None:
            pattern["random_blocks"] = tf.TensorSpec([2, None, 1], tf.int32)
        signature = [[tf.TensorSpec([2, None, 2, 4])] * 3, pattern]
        attend = tf.function(attend, signature, autograph=False, jit_compile=compiled)
    for length in (39, 37):
        heads = [tf.random.stateless_normal([2, length, 2, 4], [0, x]) for x in range(3)]
        pattern = {"lengths": tf.constant([length, 30])}
        if seed is not None:
            pattern["random_blocks"] = block_sparse.seeded_blocks(seed, 2, 4, 1, 64, length)
        found = attend(heads, pattern)
        wanted = dense(*heads, block_sparse.pair_counts(length, 4, 1, **pattern))
        for text, own in enumerate((length, 30)):  # What is behind a text means nothing.
            np.testing.assert_allclose(found[text, :own], wanted[text, :own], atol=1e-5)


def test_it_does_not_depend_on_the_tiling():
    heads = [tf.random.stateless_normal([1, 44, 2, 4], [0, x]) for x in range(3)]
    blocks = block_sparse.seeded_blocks(1, 2, 4, 1, 64, 44)
    found = []
    before = tiles.current_tiling()
    for tiling in (before, tiles.Tiling(rows=5, logits=200), tiles.Tiling(rows="all")):
        tiles.set_tiling(tiling)
        try:
            for plan in (None, blocks):
                found.append(block_sparse.attend(*heads, 4, 1, random_blocks=plan))
        finally:
            tiles.set_tiling(before)
    for number, outputs in enumerate(found[2:]):
        np.testing.assert_allclose(outputs, found[number % 2], atol=1e-5)


def test_blocks_of_training_do_not_depend_on_padding_without_released_lengths():
    tables = [
        block_sparse.seeded_blocks(3, 2, 64, 3, 4096, length, ()).numpy()
        for length in (1000, 1024, 2000, 3072, 4096)
    ]
    for shorter, longer in zip(tables, tables[1:], strict=False):
        np.testing.assert_array_equal(shorter, longer[:, : shorter.shape[1]])


def test_a_graph_finds_the_blocks_of_any_length():
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def graph(length):
        return block_sparse.seeded_blocks(2, 2, 64, 3, 4096, length)

    for length in (705, 1000, 1024, 1025, 3072, 4096):
        expected = block_sparse.seeded_blocks(2, 2, 64, 3, 4096, length)
        np.testing.assert_array_equal(graph(tf.constant(length)), expected)


def test_longer_inputs_gather_no_more_than_their_blocks():
    """No pass has a tensor over all pairs."""
    heads = [tf.TensorSpec([1, 4096, 2, 4], tf.float32)] * 3
    blocks = block_sparse.seeded_blocks(0, 2, 64, 3, 4096, 4096)

    @tf.function(autograph=False)
    def run(*heads):
        return block_sparse.attend(*heads, 64, 3, random_blocks=blocks)

    graph = run.get_concrete_function(*heads).graph
    functions = [graph, *(x.graph for x in graph._functions.values() if hasattr(x, "graph"))]
    sizes = [
        tensor.shape.num_elements() or 0
        for function in functions
        for operation in function.get_operations()
        for tensor in operation.outputs
    ]
    assert max(sizes) < 4096 * 4096 // 2
