"""Gradients of attention are the same however they are computed."""

import functools
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops import relations
from etcmodel.ops.structure import GlobalLocalStructure
from etcmodel.ops.tiles import Tiling
from tests.ops import plain_attention
from tests.ops.blockwise_cases import forget_lengths, fused
from tests.ops.test_gradients import RATE, SEED, assert_close, kept_probs, one_hot_values, split
from tests.ops.test_structure import by_structure, make_tensors, outputs_and_gradients

# Tiles of few queries in steps of few tiles, so that the passes loop over steps.
SMALL_TILES = Tiling(rows=4, logits=600)


def fixed_case(dtype=tf.float32, has_relations=False):
    """Heads, tables, structure, radius: two packed examples with every kind of mask and label."""
    rng = np.random.default_rng(0)
    long_len, global_len = 22, 5

    def ids(values):
        return tf.constant(values, tf.int32)

    structure = GlobalLocalStructure(
        long_segment_ids=ids([[1] * 9 + [2] * 13, [1] * 20 + [0] * 2]),
        long_example_ids=ids([[1] * 9 + [2] * 13, [1] * 20 + [0] * 2]),
        global_example_ids=ids([[1, 1, 2, 2, 2], [1, 1, 1, 1, 0]]),
        links=(ids(rng.integers(-1, global_len, [2, long_len])),),
        label_links=(ids(rng.integers(-1, global_len, [2, long_len])),),
        global_segment_ids=ids([[1, 1, 2, 3, 3], [1, 2, 2, 2, 0]]),
        ignore_hard_g2l_mask=ids([[1, 0, 0, 0, 0]] * 2),
        max_distance=2,
        use_hard_g2l_mask=True,
        use_hard_l2g_mask=True,
    )
    if has_relations:
        structure = structure.with_relations(*every_relation(rng, long_len, global_len))
    heads, tables = make_tensors(structure, rng)
    heads = {name: tf.cast(x, dtype) for name, x in heads.items()}
    return heads, tables, structure, 3


def every_relation(rng, long_len, global_len):
    """A relation of each kind, of two names with labels 8 and 9; some are hard."""

    def ids(high, *shape):
        return tf.constant(rng.integers(-1, high, [2, *shape]), tf.int32)

    firsts = rng.integers(0, long_len - 2, [2, 9])
    near = tf.constant(np.stack([firsts, firsts + rng.integers(0, 3, [2, 9])], -1), tf.int32)
    is_labeled = rng.random([2, long_len, 7]) < 0.2
    return (
        relations.LinkIds(ids(global_len, long_len), "one", 8, is_hard=True),
        relations.LinkPairs(ids(global_len, 30, 2), "other", 9),
        relations.GlobalEdges(ids(global_len, 9, 2), "one", 8, is_hard=True),
        relations.GlobalLabels(ids(2, global_len, global_len), "some"),
        relations.LongEdges(near, "one", 8),
        relations.LongLabels(tf.constant(np.where(is_labeled, 9, -1), tf.int32), "some"),
    )


def run(heads, tables, structure, radius, function=by_structure, prepare=tf.identity):
    """Outputs and gradients with dropout, and what it kept: of tensors as `prepare` makes them."""
    heads, probed, structure = tf.nest.map_structure(
        lambda x: prepare(x) if tf.is_tensor(x) else x, (heads, one_hot_values(heads), structure)
    )
    options = {"tiling": SMALL_TILES}
    with dropout_ops.seed_scope(SEED):
        results = outputs_and_gradients(
            function, heads, tables, structure, radius, dropout_rate=RATE, **options
        )
    return (*split(results), kept_probs(probed, tables, structure, radius, **options))


def recomputed(heads, tables, structure, radius, **options):
    """As `by_structure`, without keeping anything for the backward pass."""

    def again(*tensors):
        with dropout_ops.seed_scope(SEED):
            named = dict(zip(heads, tensors, strict=False))
            return by_structure(named, tensors[len(heads) :], structure, radius, **options)

    return tf.recompute_grad(again)(*heads.values(), *tables)


in_graph = functools.partial(tf.function, autograph=False)
# Makers of functions: one that is traced with blocks of some length keeps them.
WAYS = {
    "eagerly": lambda: run,
    "eagerly, element-wise parts compiled": lambda: fused("always", run),
    "in a graph": lambda: fused("never", in_graph(run)),
    "in a graph, element-wise parts compiled": lambda: fused("always", in_graph(run)),
    "in a graph, lengths unknown": lambda: in_graph(functools.partial(run, prepare=forget_lengths)),
    "compiled": lambda: in_graph(run, jit_compile=True),
    "recomputed": lambda: functools.partial(run, function=recomputed),
    "recomputed in a graph": lambda: in_graph(functools.partial(run, function=recomputed)),
}
# The others are mixtures of these.


def check_run(results, case, tolerance=1e-5):
    """Compares what `run` gave with plain attention."""
    heads, tables, structure, radius = case
    outputs, gradients, kept = results
    pairs = plain_attention.pairs_of(structure, radius)
    is_seen = pairs.exists & pairs.is_allowed
    assert 0.6 < np.mean(np.moveaxis(kept, 2, 3)[is_seen]) < 0.9
    expected = outputs_and_gradients(plain_attention.by_structure, heads, tables, pairs, kept, RATE)
    assert_close([*outputs, *gradients], expected, tolerance)


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize(
    "way", [x if x == "eagerly" else pytest.param(x, marks=pytest.mark.slow) for x in WAYS]
)
def test_gradients_with_dropout_are_the_same_however_they_are_computed(way):
    case = fixed_case()
    results = WAYS[way]()(*case)
    check_run(results, case)


@pytest.mark.quick_cases(1)
@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("way", ["eagerly", "in a graph, lengths unknown", "compiled"])
@pytest.mark.parametrize("dtype", [tf.float32, pytest.param(tf.bfloat16, marks=pytest.mark.slow)])
def test_gradients_of_every_relation_are_the_same_however_they_are_computed(way, dtype):
    heads, tables, structure, radius = fixed_case(dtype, has_relations=True)
    prepare = forget_lengths if "unknown" in way else tf.identity

    def run(heads):
        given, tensors = tf.nest.map_structure(
            lambda x: prepare(x) if tf.is_tensor(x) else x, (structure, heads)
        )
        options = {"tiling": SMALL_TILES}
        return outputs_and_gradients(by_structure, tensors, tables, given, radius, **options)

    run = run if way == "eagerly" else in_graph(run, jit_compile=way == "compiled")
    results = run(heads)
    pairs = plain_attention.pairs_of(structure, radius)
    expected = outputs_and_gradients(plain_attention.by_structure, heads, tables, pairs)
    assert_close(results, expected, 1e-5 if dtype == tf.float32 else 0.05)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("dtype", [tf.float64, tf.bfloat16, tf.float16])
def test_gradients_have_the_types_of_their_sources(dtype):
    case = fixed_case(dtype)
    outputs, gradients, _ = results = run(*case)
    heads, tables, *_ = case
    assert {x.dtype for x in outputs} == {dtype}
    assert [x.dtype for x in gradients] == [x.dtype for x in (*heads.values(), *tables)]
    check_run(results, case, tolerance=1e-5 if dtype == tf.float64 else 0.05)


REPLICATED = """
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.ops import test_gradient_ways as tests

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
case = tests.fixed_case()
results = tf.function(lambda: strategy.run(tests.run, case))()
assert strategy.num_replicas_in_sync == 2
for replica in range(2):
    of_replica = lambda x: strategy.experimental_local_results(x)[replica]
    tests.check_run(tf.nest.map_structure(of_replica, results), case)
"""


@pytest.mark.exhaustive
def test_gradients_are_the_same_on_two_replicas():
    """In a process of its own: logical devices must be made before anything else runs."""
    done = subprocess.run([sys.executable, "-c", REPLICATED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
