"""Graphs take inputs of any length: short ones in one tile, long ones in many."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import blockwise, compilation, labels, masks, offsets
from etcmodel.ops.block_sparse import BlockWindow
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.reach import ALL, Chunk, SharedKeys, Window
from etcmodel.ops.shapes import get_shape_list
from etcmodel.ops.tiles import TILE_ROWS, Tiling, make_tiles, most_rows_together

RADIUS, HEADS, SIZE, GLOBAL_LEN = 3, 2, 4, 5
MOST = TILE_ROWS + 2 * RADIUS


def tensors(num_rows):
    rng = np.random.default_rng(num_rows)
    shape = [1, 3 * num_rows + GLOBAL_LEN, HEADS, SIZE]
    return tf.split(
        tf.constant(rng.normal(size=shape).astype(np.float32)), [num_rows] * 3 + [-1], 1
    )


def attend(queries, keys, values, global_keys, global_mask=None):
    rng = np.random.default_rng(0)
    tables = labels.LabelTables(
        tf.constant(rng.normal(size=[9, HEADS, SIZE]).astype(np.float32)),
        tf.constant(rng.normal(size=[9, HEADS]).astype(np.float32)),
    )
    near = labels.OffsetLabels(tables, offsets.ClippedOffsets(4))
    global_masks = () if global_mask is None else (masks.KeyMask(global_mask),)
    key_sets = [
        KeySet(keys, values, Window(RADIUS, RADIUS), (), near),
        KeySet(global_keys, global_keys, ALL, global_masks),
    ]
    return blockwise.attend(queries, key_sets)


def traced(mode, jit_compile=None):
    spec = tf.TensorSpec([None, None, HEADS, SIZE])
    with compilation.fusion_scope(mode):
        made = tf.function(attend, autograph=False, jit_compile=jit_compile)
        return made.get_concrete_function(*[spec] * 4)


@pytest.fixture(scope="module", params=["auto", pytest.param("never", marks=pytest.mark.slow)])
def graph(request):
    """A graph for any length, as of a step of training, or as of an export."""
    return traced(request.param)


@pytest.mark.parametrize(
    "num_rows",
    [MOST, *(pytest.param(x, marks=pytest.mark.slow) for x in (0, 1, MOST + 1, 2 * MOST))],
)
def test_any_length_gives_the_outputs_of_known_lengths(graph, num_rows):
    given = tensors(num_rows)
    np.testing.assert_allclose(graph(*given), attend(*given), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode, jit_compile", [("auto", None), ("never", None), ("auto", True)])
def test_gradients_of_any_length_are_those_of_known_lengths(mode, jit_compile):
    def run(*given):
        with tf.GradientTape() as tape:
            tape.watch(given)
            loss = tf.reduce_sum(attend(*given) ** 2)
        return tape.gradient(loss, given)

    specs = [tf.TensorSpec([None, None, HEADS, SIZE])] * 4
    with compilation.fusion_scope(mode):
        made = tf.function(run, autograph=False, jit_compile=jit_compile)
        concrete = made.get_concrete_function(*specs)
    for num_rows in (MOST, MOST + 1):
        given = tensors(num_rows)
        for actual, expected in zip(concrete(*given), run(*given), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def operations(concrete):
    graph = concrete.graph.as_graph_def()
    return {node.op for function in graph.library.function for node in function.node_def}


def test_graphs_have_the_operations_of_both_unless_xla_compiles_them(graph):
    assert operations(graph) & {"If", "StatelessIf"}
    assert not operations(traced("auto", jit_compile=True)) & {"If", "StatelessIf"}


@dataclasses.dataclass(frozen=True)
class OwnKeyInOneTile:
    """A mask that tells how keys were gathered: rows that share all keys see only their own."""

    def prepare(self, view):
        return self

    def allowed(self, pairs):
        is_own = tf.equal(pairs.key_positions(), pairs.query_positions())
        return tf.logical_or(is_own, not isinstance(pairs.view, SharedKeys))[tf.newaxis]


def test_exports_compute_up_to_the_most_rows_in_one_tile_and_more_in_several():
    def attend(queries, keys, values):
        mask = OwnKeyInOneTile()
        return blockwise.attend(queries, [KeySet(keys, values, Window(RADIUS, RADIUS), (mask,))])

    spec = tf.TensorSpec([None, None, HEADS, SIZE])
    with compilation.fusion_scope("never"):
        concrete = tf.function(attend, autograph=False).get_concrete_function(*[spec] * 3)
    for num_rows in (1, MOST, MOST + 1, 2 * MOST):
        *given, _ = tensors(num_rows)
        is_one = np.allclose(concrete(*given), given[-1])
        assert is_one == (num_rows <= MOST)


def test_the_most_rows_of_one_tile_are_those_of_known_lengths():
    reaches = [Window(RADIUS, RADIUS), ALL]
    assert most_rows_together(reaches, Tiling()) == MOST
    assert most_rows_together(reaches, Tiling(rows=8)) == most_rows_together([ALL], Tiling()) == 0
    for num_rows in (MOST, MOST + 1):
        tiles = make_tiles(num_rows, HEADS, reaches, [num_rows, GLOBAL_LEN], Tiling())
        assert tiles.is_one == (num_rows == MOST)


@pytest.mark.parametrize("num_allowed", [0, 2, GLOBAL_LEN])
def test_what_is_never_compiled_has_the_same_outputs_and_gradients(num_allowed):
    given = tensors(9)
    mask = tf.constant([[1] * num_allowed + [0] * (GLOBAL_LEN - num_allowed)])

    def run(mode):
        with compilation.fusion_scope(mode), tf.GradientTape() as tape:
            tape.watch(given)
            outputs = attend(*given, mask)
            loss = tf.reduce_sum(outputs**2)
        return [outputs, *tape.gradient(loss, given)]

    for actual, expected in zip(run("never"), run("auto"), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_a_query_without_allowed_keys_averages_over_them():
    _, _, keys, _ = tensors(GLOBAL_LEN)
    mask = masks.KeyMask(tf.zeros([1, GLOBAL_LEN], tf.int32))
    with compilation.fusion_scope("never"):
        outputs = blockwise.attend(
            tf.zeros_like(keys),
            [KeySet(keys, keys, ALL, (mask,)), KeySet(-keys, 3 * keys, ALL, (mask,))],
        )
    expected = np.broadcast_to(2 * np.mean(keys, axis=1, keepdims=True), keys.shape)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reach", [Window(RADIUS, RADIUS), BlockWindow(4), Chunk(4), ALL], ids=repr)
@pytest.mark.quick_cases(1)
def test_xla_may_know_a_mask_when_it_compiles(reach):
    """Which is then a constant inside of the loop over steps, whose length is none."""

    def attend_to_all_but_the_last(queries, keys, values):
        batch, length, *_ = get_shape_list(queries)
        mask = tf.repeat(tf.range(length)[tf.newaxis] < length - 1, batch, axis=0)
        key_set = KeySet(keys, values, reach, masks=(masks.KeyMask(mask),))
        return blockwise.attend(queries, [key_set])

    specs = [tf.TensorSpec([2, None, HEADS, SIZE])] * 3
    compiled = tf.function(attend_to_all_but_the_last, specs, autograph=False, jit_compile=True)
    for length in (40, 2 * MOST):
        given = [tf.random.stateless_normal([2, length, HEADS, SIZE], [0, x]) for x in range(3)]
        expected = attend_to_all_but_the_last(*given)
        np.testing.assert_allclose(compiled(*given), expected, atol=1e-5)
