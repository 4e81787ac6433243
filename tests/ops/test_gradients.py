"""The backward pass, which recomputes the probabilities, against ones that do not.

The other ways are TensorFlow's own differentiation of attention over all pairs in float64, written
with ordinary operations, and finite differences of the NumPy twin.
"""

import dataclasses
import functools
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import attention, compilation, layout
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops.structure import GlobalLocalStructure
from tests.ops import numpy_attention, plain_attention
from tests.ops.test_attention import local_inputs, random_floats
from tests.ops.test_structure import by_structure, cases, make_tensors, outputs_and_gradients

EXAMPLES = settings(derandomize=True, deadline=None, max_examples=8)
SEED = (5, 6)
RATE = 0.25
# Blocks of few queries in chunks of few blocks, so that the passes loop over chunks.
SMALL_BLOCKS = {"_BLOCK_LEN": 4, "_LOGITS_PER_CHUNK": 600}
cuts = st.fixed_dictionaries(
    {
        "_BLOCK_LEN": st.sampled_from([1, 3, 8, 64]),
        "_LOGITS_PER_CHUNK": st.sampled_from([100, 600, 1 << 23]),
    }
)


def cut_into(cut):
    """Sets the lengths of blocks and chunks."""
    return mock.patch.multiple(layout, **cut)


def one_hot_values(heads):
    """`heads` with values by which the output is the probabilities themselves."""
    batch, global_len, num_heads, _ = heads["global_q"].shape
    num_tokens = global_len + heads["long_q"].shape[1]
    values = tf.eye(num_tokens, dtype=heads["global_q"].dtype)[:, tf.newaxis]
    values = tf.broadcast_to(values, [batch, num_tokens, num_heads, num_tokens])
    return {**heads, "global_v": values[:, :global_len], "long_v": values[:, global_len:]}


def kept_probs(heads, tables, structure, radius, **options):
    """Which probabilities dropout keeps, from `one_hot_values`.

    Returns:
        bool [batch, global_len + long_len, heads, global_len + long_len].
    """
    with dropout_ops.seed_scope(SEED):
        long_probs, global_probs = by_structure(
            heads, tables, structure, radius, dropout_rate=RATE, **options
        )
    return tf.concat([global_probs, long_probs], axis=1) > 0


def assert_close(actual, expected, tolerance=1e-5):
    """Within a share of the largest expected number, or of 1."""
    for x, y in zip(actual, expected, strict=True):
        x, y = (tf.cast(tf.convert_to_tensor(z), tf.float64).numpy() for z in (x, y))
        atol = tolerance * max(1, np.abs(y).max(initial=0))
        np.testing.assert_allclose(x, y, rtol=0, atol=atol)


@pytest.mark.parametrize("has_dropout", [False, True])
def test_gradients_by_structure_equal_those_of_plain_attention(has_dropout):
    @EXAMPLES
    @given(cases(max_long=24, max_global=5), cuts, st.sampled_from(["auto", "sparse", "full"]))
    def check(case, cut, implementation):
        structure, radius, rng = case
        heads, tables = make_tensors(structure, rng)
        arguments = (heads, tables, structure, radius)
        options, kept = {"implementation": implementation}, None
        with cut_into(cut), dropout_ops.seed_scope(SEED):
            if has_dropout:
                kept = kept_probs(one_hot_values(heads), *arguments[1:], **options)
                options["dropout_rate"] = RATE
            actual = outputs_and_gradients(by_structure, *arguments, **options)
        pairs = plain_attention.pairs_of(structure, radius)
        expected = outputs_and_gradients(
            plain_attention.by_structure, heads, tables, pairs, kept, RATE
        )
        assert_close(actual, expected)

    check()


def by_windows(heads, tables, inputs):
    """Dense local attention by the op."""
    side = inputs.side
    if side is not None:
        side = dataclasses.replace(side, keys=heads["side_k"], values=heads["side_v"])
    return [
        inputs.run(
            attention.local_attend,
            queries=heads["q"],
            keys=heads["k"],
            values=heads["v"],
            side=side,
            labels=numpy_attention.Labels(*tables) if tables else None,
        )
    ]


def by_all_pairs(heads, tables, inputs):
    """The same by plain attention."""
    keys, values = (
        tf.concat([heads[name] for name in (f"side_{what}", what) if name in heads], axis=1)
        for what in "kv"
    )
    return [
        plain_attention.attend(heads["q"], keys, values, pairs_of_windows(inputs), tables or None)
    ]


def pairs_of_windows(inputs):
    """`Pairs` of local queries with the side keys, which come first, and the local keys."""
    batch, long_len = inputs.queries.shape[:2]
    side_len = 0 if inputs.side is None else inputs.side.keys.shape[1]
    shape = batch, long_len, side_len + long_len
    exists, is_allowed = np.ones(shape, bool), np.ones(shape, bool)
    labels = np.zeros(shape, int)
    for row, query, key in np.ndindex(batch, long_len, long_len):
        at, column = (row, query, side_len + key), key - query + inputs.local_radius
        exists[at] = 0 <= column <= 2 * inputs.local_radius
        if exists[at] and inputs.att_mask is not None:
            is_allowed[at] = inputs.att_mask[row, query, column]
        if exists[at] and inputs.att_ids is not None:
            labels[at] = inputs.att_ids[row, query, column]
    if side_len and inputs.side.att_mask is not None:
        is_allowed[:, :, :side_len] = inputs.side.att_mask
    if side_len and inputs.side.att_ids is not None:
        labels[:, :, :side_len] = inputs.side.att_ids
    return numpy_attention.Pairs(exists, is_allowed, labels)


@EXAMPLES
@given(local_inputs(), cuts)
def test_gradients_by_dense_windows_equal_those_of_plain_attention(inputs, cut):
    heads = {"q": inputs.queries, "k": inputs.keys, "v": inputs.values}
    if inputs.side is not None:
        heads |= {"side_k": inputs.side.keys, "side_v": inputs.side.values}
    heads = {name: tf.constant(value) for name, value in heads.items()}
    tables = [tf.constant(table) for table in vars(inputs.labels).values()] if inputs.labels else []
    with cut_into(cut):
        actual = outputs_and_gradients(by_windows, heads, tables, inputs)
    assert_close(actual, outputs_and_gradients(by_all_pairs, heads, tables, inputs))


@EXAMPLES
@given(st.integers(1, 12), st.integers(1, 12), st.booleans(), cuts, st.integers(0, 2**16))
def test_gradients_by_dense_pairs_equal_those_of_plain_attention(
    query_len, key_len, use_one_hot_lookup, cut, seed
):
    rng = np.random.default_rng(seed)
    heads = {
        what: tf.constant(random_floats(rng, 2, length, 2, size))
        for what, length, size in (("q", query_len, 3), ("k", key_len, 3), ("v", key_len, 4))
    }
    tables = [tf.constant(random_floats(rng, 5, 2, *size)) for size in ([3], [])]
    att_mask = rng.integers(0, 2, [2, query_len, key_len])
    att_mask[:, :, 0] = 1
    att_ids = rng.integers(0, 5, att_mask.shape)
    pairs = numpy_attention.Pairs(np.ones_like(att_mask, bool), att_mask.astype(bool), att_ids)

    def by_op(heads, tables):
        labels = attention.RelativeLabels(*tables, use_one_hot_lookup=use_one_hot_lookup)
        return [
            attention.attend(*heads.values(), att_mask=att_mask, att_ids=att_ids, labels=labels)
        ]

    def by_all_pairs(heads, tables):
        return [plain_attention.attend(*heads.values(), pairs, tables)]

    with cut_into(cut):
        actual = outputs_and_gradients(by_op, heads, tables)
    assert_close(actual, outputs_and_gradients(by_all_pairs, heads, tables))


def split(results, num_outputs=2):
    """(outputs, gradients), the latter as tensors."""
    return results[:num_outputs], [tf.convert_to_tensor(x) for x in results[num_outputs:]]


@settings(EXAMPLES, max_examples=5)
@given(cases(max_long=12, max_global=4), cuts)
def test_gradients_agree_with_finite_differences_of_the_twin(case, cut):
    """The twin computes in float64, so that the differences are exact to about 1e-8."""
    structure, radius, rng = case
    heads, tables = make_tensors(structure, rng)
    with cut_into(cut):
        _, gradients = split(outputs_and_gradients(by_structure, heads, tables, structure, radius))
    sources = [x.numpy().astype(float) for x in (*heads.values(), *tables)]
    directions = [rng.normal(size=x.shape) for x in sources]
    pairs = plain_attention.pairs_of(structure, radius)

    def target(step):
        moved = [x + step * direction for x, direction in zip(sources, directions, strict=True)]
        named = dict(zip(heads, moved, strict=False))
        joined = [np.concatenate([named[f"global_{x}"], named[f"long_{x}"]], 1) for x in "qkv"]
        labels = numpy_attention.Labels(*moved[len(heads) :])
        return np.sin(numpy_attention.structured_attend(*joined, pairs, labels)).sum()

    expected = (target(1e-5) - target(-1e-5)) / 2e-5
    parts = [np.multiply(x, y) for x, y in zip(gradients, directions, strict=True)]
    slope, scale = (sum(np.sum(f(part)) for part in parts) for f in (np.asarray, np.abs))
    assert abs(slope - expected) <= 1e-6 * max(1, scale)


def fixed_case(dtype=tf.float32):
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
    heads, tables = make_tensors(structure, rng)
    heads = {name: tf.cast(x, dtype) for name, x in heads.items()}
    return heads, tables, structure, 3


def run(heads, tables, structure, radius, function=by_structure, prepare=tf.identity):
    """Outputs and gradients with dropout, and what it kept: of tensors as `prepare` makes them."""
    heads, probed, structure = tf.nest.map_structure(
        lambda x: prepare(x) if tf.is_tensor(x) else x, (heads, one_hot_values(heads), structure)
    )
    with dropout_ops.seed_scope(SEED):
        results = outputs_and_gradients(
            function, heads, tables, structure, radius, dropout_rate=RATE
        )
    return (*split(results), kept_probs(probed, tables, structure, radius))


def recomputed(heads, tables, structure, radius, **options):
    """As `by_structure`, without keeping anything for the backward pass."""

    def again(*tensors):
        with dropout_ops.seed_scope(SEED):
            named = dict(zip(heads, tensors, strict=False))
            return by_structure(named, tensors[len(heads) :], structure, radius, **options)

    return tf.recompute_grad(again)(*heads.values(), *tables)


def forget_lengths(x):
    """The same numbers, in a shape of which only heads and sizes are known when tracing."""
    return tf.compat.v1.placeholder_with_default(x, [None, None, *x.shape[2:]])


def fused(mode, function):
    """A function that computes in a fusion scope."""

    def call(*arguments):
        with compilation.fusion_scope(mode):
            return function(*arguments)

    return call


# Makers of functions: one that is traced with blocks of some length keeps them.
WAYS = {
    "eagerly": lambda: run,
    "eagerly, element-wise parts compiled": lambda: fused("always", run),
    "in a graph": lambda: fused("never", tf.function(run)),
    "in a graph, element-wise parts compiled": lambda: fused("always", tf.function(run)),
    "in a graph, lengths unknown": lambda: tf.function(
        functools.partial(run, prepare=forget_lengths)
    ),
    "compiled": lambda: tf.function(run, jit_compile=True),
    "recomputed": lambda: functools.partial(run, function=recomputed),
    "recomputed in a graph": lambda: tf.function(functools.partial(run, function=recomputed)),
}


def check_run(results, case, tolerance=1e-5):
    """Compares what `run` gave with plain attention."""
    heads, tables, structure, radius = case
    outputs, gradients, kept = results
    pairs = plain_attention.pairs_of(structure, radius)
    is_seen = pairs.exists & pairs.is_allowed
    assert 0.6 < np.mean(np.moveaxis(kept, 2, 3)[is_seen]) < 0.9
    expected = outputs_and_gradients(plain_attention.by_structure, heads, tables, pairs, kept, RATE)
    assert_close([*outputs, *gradients], expected, tolerance)


@pytest.mark.parametrize("way", WAYS)
def test_gradients_with_dropout_are_the_same_however_they_are_computed(way):
    case = fixed_case()
    with cut_into(SMALL_BLOCKS):
        results = WAYS[way]()(*case)
    check_run(results, case)


@pytest.mark.parametrize("dtype", [tf.float64, tf.bfloat16, tf.float16])
def test_gradients_have_the_types_of_their_sources(dtype):
    case = fixed_case(dtype)
    with cut_into(SMALL_BLOCKS):
        outputs, gradients, _ = results = run(*case)
    heads, tables, *_ = case
    assert {x.dtype for x in outputs} == {dtype}
    assert [x.dtype for x in gradients] == [x.dtype for x in (*heads.values(), *tables)]
    check_run(results, case, tolerance=1e-5 if dtype == tf.float64 else 0.05)


REPLICATED = """
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.ops import test_gradients as tests

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
case = tests.fixed_case()
results = tf.function(lambda: strategy.run(tests.run, case))()
assert strategy.num_replicas_in_sync == 2
for replica in range(2):
    of_replica = lambda x: strategy.experimental_local_results(x)[replica]
    tests.check_run(tf.nest.map_structure(of_replica, results), case)
"""


def test_gradients_are_the_same_on_two_replicas():
    """In a process of its own: logical devices must be made before anything else runs."""
    done = subprocess.run([sys.executable, "-c", REPLICATED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
