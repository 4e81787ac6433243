"""What attention by structure guarantees, whatever the lengths and the company of an example."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import attention
from etcmodel.ops import structure as ops_structure
from etcmodel.ops.structure import GlobalLocalStructure
from etcmodel.ops.tiles import Tiling
from tests.ops.test_structure import NUM_HEADS, SIZE, by_pairs, by_structure

EXAMPLES = settings(max_examples=12)
MAX_DISTANCE = 3
# Lengths of a few dozen then make many tiles and steps.
TILING = Tiling(rows=5, logits=1500)


def random_document(rng, long_len, global_len):
    """Arrays by name, without a batch axis: heads, and what the structure says of the tokens."""
    ids = {
        "segments": np.cumsum(rng.random(long_len) < 0.2) + 1,
        "links": rng.integers(-1, global_len + 1, long_len),
        "more_links": rng.integers(-1, global_len + 1, long_len),
        "label_links": rng.integers(-1, global_len + 1, long_len),
        "ignore_l2g": rng.integers(0, 2, long_len),
        "global_segments": np.cumsum(rng.random(global_len) < 0.4) + 1,
        "ignore_g2l": rng.integers(0, 2, global_len),
        "long_example": np.ones(long_len, int),
        "global_example": np.ones(global_len, int),
    }
    lengths = {"long": long_len, "global": global_len}
    heads = {
        f"{side}_{what}": rng.normal(size=[length, NUM_HEADS, SIZE])
        for side, length in lengths.items()
        for what in "qkv"
    }
    return ids | heads


def random_padding(rng, long_len, global_len):
    """The same for padding: an example and a segment of its own, and anything else."""
    padding = random_document(rng, long_len, global_len)
    for name in ("segments", "global_segments", "long_example", "global_example"):
        padding[name] = np.zeros_like(padding[name])
    return {name: 10 * x if x.dtype == float else x for name, x in padding.items()}


def join(*documents):
    """Documents one after the other in one row; they become examples 1, 2, …"""
    moved, num_global, num_segments = [], 0, 0
    for number, document in enumerate(documents, start=1):
        document = dict(document)
        for name in ("long_example", "global_example"):
            document[name] = number * document[name]
        for name in ("segments", "global_segments"):
            document[name] = document[name] + num_segments * (document[name] > 0)
        for name in ("links", "more_links", "label_links"):
            document[name] = np.where(document[name] < 0, -1, document[name] + num_global)
        num_global += len(document["global_example"])
        num_segments += len(document["segments"]) + num_global
        moved.append(document)
    return {name: np.concatenate([x[name] for x in moved]) for name in documents[0]}


def stack(rows, max_distance=MAX_DISTANCE, hard=(False, False), dtype=tf.float32):
    """(heads, structure) of a batch of rows of equal lengths."""
    batch = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    ids = {name: tf.constant(x, tf.int32) for name, x in batch.items() if x.dtype != float}
    structure = GlobalLocalStructure(
        long_segment_ids=ids["segments"],
        long_example_ids=ids["long_example"],
        global_example_ids=ids["global_example"],
        links=(ids["links"], ids["more_links"]),
        label_links=(ids["label_links"],),
        global_segment_ids=ids["global_segments"],
        ignore_hard_g2l_mask=ids["ignore_g2l"],
        ignore_hard_l2g_mask=ids["ignore_l2g"],
        max_distance=max_distance,
        use_hard_g2l_mask=hard[0],
        use_hard_l2g_mask=hard[1],
    )
    heads = {name: tf.constant(x, dtype) for name, x in batch.items() if name not in ids}
    return heads, structure


@functools.cache
def tables_of(dtype=tf.float32):
    rng = np.random.default_rng(0)
    shapes = ([2 * MAX_DISTANCE + 4, NUM_HEADS, SIZE], [2 * MAX_DISTANCE + 4, NUM_HEADS])
    return [tf.constant(rng.normal(size=shape), dtype) for shape in shapes]


def attend(rows, radius, implementation="auto", dropout_rate=0.0, **options):
    """Long and global output of a batch of rows."""
    heads, structure = stack(rows, **options)
    tables = tables_of(heads["long_q"].dtype)
    return by_structure(heads, tables, structure, radius, implementation, dropout_rate, TILING)


def part(outputs, row, documents, index):
    """The outputs of one of the documents that were joined to a row."""
    parts = []
    for output, side in zip(outputs, ("long", "global"), strict=True):
        lengths = [len(document[f"{side}_example"]) for document in documents]
        start = sum(lengths[:index])
        parts.append(output[row, start : start + lengths[index]])
    return parts


def assert_close(actual, expected, tolerance=1e-6):
    """Within a share of the largest expected number, or of 1."""
    for x, y in zip(actual, expected, strict=True):
        atol = tolerance * max(1, np.abs(y).max(initial=0))
        np.testing.assert_allclose(x, y, rtol=0, atol=atol)


def assert_identical(actual, expected):
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(x, y)


seeds = st.integers(0, 2**16)
radii = st.integers(1, 12)
lengths = st.tuples(st.integers(0, 30), st.integers(0, 5)).filter(any)
more_lengths = st.tuples(st.integers(0, 20), st.integers(0, 4))
ways = st.fixed_dictionaries(
    {
        "implementation": st.sampled_from(["auto", "sparse", "full"]),
        "hard": st.tuples(st.booleans(), st.booleans()),
        "max_distance": st.sampled_from([0, MAX_DISTANCE]),
    }
)


@EXAMPLES
@given(st.lists(lengths, min_size=1, max_size=3), more_lengths, radii, ways, seeds)
def test_a_batch_gives_what_its_examples_give_alone(sizes, more, radius, way, seed):
    """Whatever the padding, and whatever is in it."""
    rng = np.random.default_rng(seed)
    documents = [random_document(rng, *size) for size in sizes]
    longest = np.max(sizes, axis=0) + more
    rows = [
        join(x, random_padding(rng, *(longest - n))) for x, n in zip(documents, sizes, strict=True)
    ]
    outputs = attend(rows, radius, **way)
    for row, document in enumerate(documents):
        alone = attend([document], radius, **way)
        assert_close(part(outputs, row, [document], 0), part(alone, 0, [document], 0))


@pytest.mark.slow
@EXAMPLES
@given(st.lists(lengths, min_size=2, max_size=4), more_lengths, radii, ways, seeds)
def test_packed_examples_give_what_they_give_alone(sizes, more, radius, way, seed):
    rng = np.random.default_rng(seed)
    documents = [random_document(rng, *size) for size in sizes]
    outputs = attend([join(*documents, random_padding(rng, *more))], radius, **way)
    for index, document in enumerate(documents):
        alone = attend([document], radius, **way)
        assert_close(part(outputs, 0, documents, index), part(alone, 0, [document], 0))


@pytest.mark.slow
@pytest.mark.parametrize("radius", [1, 4, 9])
def test_every_length_gives_the_same_in_every_way(radius):
    """Lengths below, at and beyond the radius, the block and the chunk, and multiples of none."""
    rng = np.random.default_rng(radius)
    for long_len in (*range(1, 12), 15, 16, 19):
        document = random_document(rng, long_len, long_len % 4)
        heads, structure = stack([document], hard=(True, True))
        expected = by_pairs(heads, tables_of(), structure, radius)
        for implementation in ("auto", "sparse", "full"):
            assert_close(attend([document], radius, implementation, hard=(True, True)), expected)


@pytest.mark.parametrize("implementation", ["auto", "sparse", "full"])
def test_without_a_long_input_it_is_full_attention_over_the_global_input(implementation):
    document = random_document(np.random.default_rng(0), 0, 5)
    heads, structure = stack([document])
    labels = attention.RelativeLabels(*tables_of())
    expected = attention.attend(
        heads["global_q"],
        heads["global_k"],
        heads["global_v"],
        att_ids=ops_structure.g2g_labels(structure),
        labels=labels,
    )
    long_output, global_output = attend([document], 3, implementation)
    assert long_output.shape == [1, 0, NUM_HEADS, SIZE]
    assert_close([global_output], [expected])


@pytest.mark.parametrize("implementation", ["auto", "sparse", "full"])
def test_without_a_global_input_it_is_local_attention(implementation):
    document = random_document(np.random.default_rng(0), 17, 0)
    document["segments"][:] = 1
    heads, _ = stack([document])
    expected = attention.local_attend(
        heads["long_q"], heads["long_k"], heads["long_v"], local_radius=3
    )
    long_output, global_output = attend([document], 3, implementation, max_distance=0)
    assert global_output.shape == [1, 0, NUM_HEADS, SIZE]
    assert_close([long_output], [expected])


def test_without_any_token_nothing_comes_out():
    outputs = attend([random_document(np.random.default_rng(0), 0, 0)] * 2, 3)
    assert [output.shape for output in outputs] == [[2, 0, NUM_HEADS, SIZE]] * 2


@pytest.mark.parametrize("implementation", ["auto", "sparse", "full"])
def test_float64_heads_give_float64_outputs_with_the_same_numbers(implementation):
    rows = [random_document(np.random.default_rng(0), 23, 4)]
    outputs = [attend(rows, 3, implementation, dtype=x) for x in (tf.float64, tf.float32)]
    assert [output.dtype for output in outputs[0]] == [tf.float64] * 2
    assert_close(*outputs, tolerance=3e-6)
