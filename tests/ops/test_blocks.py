"""However the queries are cut into blocks and chunks, attention is that of the NumPy twin."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import attention, layout, windows
from tests.ops import numpy_attention, plain_attention
from tests.ops.test_attention import local_inputs
from tests.ops.test_structure import by_structure, cases, make_tensors

EXAMPLES = settings(derandomize=True, deadline=None, max_examples=25)
# From blocks of one query, a chunk each, to all queries in one block.
cuts = st.fixed_dictionaries(
    {
        "_BLOCK_LEN": st.integers(1, 24),
        "_LOGITS_PER_CHUNK": st.sampled_from([1, 300, 3000, 1 << 23]),
    }
)


def cut_into(cut):
    """Sets the lengths of blocks and chunks."""
    return mock.patch.multiple(layout, **cut)


def twin(heads, tables, structure, radius):
    """Long and global output."""
    pairs = plain_attention.pairs_of(structure, radius)
    joined = [np.concatenate([heads[f"global_{what}"], heads[f"long_{what}"]], 1) for what in "qkv"]
    labels = numpy_attention.Labels(*(table.numpy() for table in tables))
    output = numpy_attention.structured_attend(*joined, pairs, labels)
    return np.split(output, [heads["global_q"].shape[1]], axis=1)[::-1]


@pytest.mark.parametrize("implementation", ["auto", "sparse", "full"])
def test_attention_by_structure_equals_the_twin(implementation):
    @EXAMPLES
    @given(cases(max_long=24, max_global=5), cuts)
    def check(case, cut):
        structure, radius, rng = case
        heads, tables = make_tensors(structure, rng)
        with cut_into(cut):
            outputs = by_structure(heads, tables, structure, radius, implementation)
        for output, expected in zip(outputs, twin(heads, tables, structure, radius), strict=True):
            np.testing.assert_allclose(output, expected, atol=1e-5)

    check()


@EXAMPLES
@given(local_inputs(), cuts)
def test_dense_local_attention_equals_the_twin(inputs, cut):
    with cut_into(cut):
        output = inputs.run(attention.local_attend)
    np.testing.assert_allclose(output, inputs.twin(), atol=1e-5)


layouts = st.tuples(
    st.integers(1, 40), st.integers(1, 3000), st.none() | st.integers(1, 10), st.booleans()
)


@EXAMPLES
@given(layouts, cuts)
def test_chunks_hold_every_row_once_and_in_order(sizes, cut):
    num_rows, logits_per_row, radius, is_known = sizes
    with cut_into(cut):
        rows = layout.block_layout(
            num_rows if is_known else tf.constant(num_rows), logits_per_row, radius
        )
    padded = rows.pad(tf.range(1, num_rows + 1)[tf.newaxis])
    indices = range(int(rows.num_chunks))
    chunks = [rows.chunk(i if len(indices) == 1 else tf.constant(i)) for i in indices]
    taken = np.concatenate([np.ravel(chunk.rows_of(padded)) for chunk in chunks])
    np.testing.assert_array_equal(taken[:num_rows], np.arange(1, num_rows + 1))
    assert not taken[num_rows:].any()
    positions = np.concatenate([np.ravel(chunk.row_positions()) for chunk in chunks])
    np.testing.assert_array_equal(positions, np.arange(len(positions)))


@EXAMPLES
@given(st.integers(1, 30), st.integers(1, 9), cuts)
def test_windows_hold_the_keys_at_their_positions(num_rows, radius, cut):
    with cut_into(cut):
        rows = layout.block_layout(num_rows, 100, radius)
    after = rows.padded_rows - num_rows + rows.margin
    keys = windows.pad_axis(tf.range(num_rows)[tf.newaxis], 1, rows.margin, after, value=-1)
    for index in range(rows.num_chunks):
        chunk = rows.chunk(index if rows.num_chunks == 1 else tf.constant(index))
        positions = chunk.window_positions().numpy()
        expected = np.where((positions >= 0) & (positions < num_rows), positions, -1)
        np.testing.assert_array_equal(chunk.windows_of(keys, 1)[0], expected)


@st.composite
def shears(draw):
    """Length of a block, radius, number of keys and first column, as layouts have them."""
    block_len, radius = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    if draw(st.booleans()):  # The only block sees all keys.
        return block_len, radius, block_len, radius
    margin = radius + draw(st.integers(0, 2))
    return block_len, radius, block_len + 2 * margin, radius - margin


@EXAMPLES
@given(shears(), st.integers(0, 3))
def test_a_shear_moves_row_i_by_i_columns(sizes, num_zeros):
    block_len, radius, num_keys, first_column = sizes
    offsets = np.random.default_rng(0).integers(1, 100, [2, block_len, 2 * radius + 1])
    expected = np.zeros([2, block_len, num_keys], int)
    for row, column in np.ndindex(block_len, num_keys):
        if 0 <= (offset := column + first_column - row) <= 2 * radius:
            expected[:, row, column] = offsets[:, row, offset]
    padded = np.pad(offsets, [(0, 0), (0, 0), (0, num_zeros)])
    np.testing.assert_array_equal(windows.shear(padded, num_keys, first_column), expected)


@EXAMPLES
@given(shears(), st.integers(0, 2**16))
def test_an_unshear_is_the_transpose_of_the_shear(sizes, seed):
    block_len, radius, num_keys, first_column = sizes
    rng = np.random.default_rng(seed)
    offsets = rng.integers(-9, 9, [block_len, 2 * radius + 1])
    columns = rng.integers(-9, 9, [block_len, num_keys])
    sheared = windows.shear(offsets, num_keys, first_column)
    unsheared = windows.unshear(columns, 2 * radius + 1, first_column)
    assert np.sum(sheared * columns) == np.sum(offsets * unsheared)


@EXAMPLES
@given(st.integers(1, 5), st.integers(1, 7), st.integers(0, 9), st.integers(0, 2**16))
def test_an_overlapping_sum_is_the_transpose_of_windows(num_blocks, block_len, margin, seed):
    rng = np.random.default_rng(seed)
    entries = rng.integers(-9, 9, [num_blocks * block_len + 2 * margin, 2])
    parts = rng.integers(-9, 9, [num_blocks, block_len + 2 * margin, 2])
    taken = windows.windows(entries, num_blocks, block_len, margin, axis=0)
    added = windows.overlap_add(parts, block_len, margin)
    assert np.sum(taken * parts) == np.sum(entries * added)
