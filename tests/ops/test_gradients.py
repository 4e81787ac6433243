"""The backward pass, which recomputes the probabilities, against ones that do not.

The other ways are TensorFlow's own differentiation of attention over all pairs in float64, written
with ordinary operations, and finite differences of the NumPy twin.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import attention
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops.tiles import Tiling
from tests.ops import numpy_attention, plain_attention
from tests.ops.test_attention import local_inputs, random_floats
from tests.ops.test_structure import by_structure, cases, make_tensors, outputs_and_gradients

EXAMPLES = settings(max_examples=8)
SEED = (5, 6)
RATE = 0.25
tilings = st.builds(
    Tiling,
    rows=st.sampled_from([1, 3, 8, 64, None]),
    logits=st.sampled_from([100, 600, 1 << 23]),
)


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


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("has_dropout", [False, True])
def test_gradients_by_structure_equal_those_of_plain_attention(has_dropout):
    @EXAMPLES
    @given(cases(max_long=24, max_global=5), tilings, st.sampled_from(["auto", "sparse", "full"]))
    def check(case, tiling, implementation):
        structure, radius, rng = case
        heads, tables = make_tensors(structure, rng)
        arguments = (heads, tables, structure, radius)
        options, kept = {"implementation": implementation, "tiling": tiling}, None
        with dropout_ops.seed_scope(SEED):
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


def by_windows(heads, tables, inputs, tiling):
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
            tiling=tiling,
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
@given(local_inputs(), tilings)
def test_gradients_by_dense_windows_equal_those_of_plain_attention(inputs, tiling):
    heads = {"q": inputs.queries, "k": inputs.keys, "v": inputs.values}
    if inputs.side is not None:
        heads |= {"side_k": inputs.side.keys, "side_v": inputs.side.values}
    heads = {name: tf.constant(value) for name, value in heads.items()}
    tables = [tf.constant(table) for table in vars(inputs.labels).values()] if inputs.labels else []
    actual = outputs_and_gradients(by_windows, heads, tables, inputs, tiling)
    assert_close(actual, outputs_and_gradients(by_all_pairs, heads, tables, inputs))


@EXAMPLES
@given(st.integers(1, 12), st.integers(1, 12), st.booleans(), tilings, st.integers(0, 2**16))
def test_gradients_by_dense_pairs_equal_those_of_plain_attention(
    query_len, key_len, use_one_hot_lookup, tiling, seed
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
        options = {"att_mask": att_mask, "att_ids": att_ids, "labels": labels}
        return [attention.attend(*heads.values(), **options, tiling=tiling)]

    def by_all_pairs(heads, tables):
        return [plain_attention.attend(*heads.values(), pairs, tables)]

    actual = outputs_and_gradients(by_op, heads, tables)
    assert_close(actual, outputs_and_gradients(by_all_pairs, heads, tables))


def split(results, num_outputs=2):
    """(outputs, gradients), the latter as tensors."""
    return results[:num_outputs], [tf.convert_to_tensor(x) for x in results[num_outputs:]]


@settings(EXAMPLES, max_examples=5)
@given(cases(max_long=12, max_global=4), tilings)
def test_gradients_agree_with_finite_differences_of_the_twin(case, tiling):
    """The twin computes in float64, so that the differences are exact to about 1e-8."""
    structure, radius, rng = case
    heads, tables = make_tensors(structure, rng)
    results = outputs_and_gradients(by_structure, heads, tables, structure, radius, tiling=tiling)
    _, gradients = split(results)
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
