"""However the queries are cut into tiles and steps, attention is that of the NumPy twin."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.ops import attention, windows
from etcmodel.ops.reach import ALL, Chunk, Window
from etcmodel.ops.tiles import Tiling, make_tiles, set_tiling
from tests.ops import numpy_attention, plain_attention
from tests.ops.test_attention import local_inputs
from tests.ops.test_structure import by_structure, cases, make_tensors

EXAMPLES = settings(max_examples=25)
# From tiles of one query, a step each, to all queries in one tile.
tilings = st.builds(
    Tiling,
    rows=st.none() | st.just("all") | st.integers(1, 24),
    logits=st.sampled_from([1, 300, 3000, 1 << 23]),
)


def twin(heads, tables, structure, radius):
    """Long and global output."""
    pairs = plain_attention.pairs_of(structure, radius)
    joined = [np.concatenate([heads[f"global_{what}"], heads[f"long_{what}"]], 1) for what in "qkv"]
    labels = numpy_attention.Labels(*(table.numpy() for table in tables))
    output = numpy_attention.structured_attend(*joined, pairs, labels)
    return np.split(output, [heads["global_q"].shape[1]], axis=1)[::-1]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("implementation", ["auto", "sparse", "full"])
def test_attention_by_structure_equals_the_twin(implementation):
    @EXAMPLES
    @given(cases(max_long=24, max_global=5), tilings)
    def check(case, tiling):
        structure, radius, rng = case
        heads, tables = make_tensors(structure, rng)
        outputs = by_structure(heads, tables, structure, radius, implementation, tiling=tiling)
        for output, expected in zip(outputs, twin(heads, tables, structure, radius), strict=True):
            np.testing.assert_allclose(output, expected, atol=1e-5)

    check()


@EXAMPLES
@given(local_inputs(), tilings)
def test_dense_local_attention_equals_the_twin(inputs, tiling):
    output = inputs.run(attention.local_attend, tiling=tiling)
    np.testing.assert_allclose(output, inputs.twin(), atol=1e-5)


reaches = st.one_of(
    st.just(ALL),
    st.builds(Window, left=st.integers(0, 9), right=st.integers(0, 9), dilation=st.integers(1, 4)),
    st.builds(lambda size, shift: Chunk(size, shift % size), st.integers(1, 12), st.integers(0, 9)),
)


def steps_of(tiles):
    """Every step, with its number as the loop gives it."""
    num_steps = int(tiles.num_steps)
    return [tiles.step(i if num_steps == 1 else tf.constant(i)) for i in range(num_steps)]


@EXAMPLES
@given(st.integers(1, 40), reaches, st.integers(1, 50), tilings, st.booleans())
def test_steps_hold_every_row_once_at_its_position(num_rows, reach, heads, tiling, is_known):
    length = num_rows if is_known else tf.constant(num_rows)
    tiles = make_tiles(length, heads, [reach], [length], tiling)
    arranged = tiles.arrange(tf.range(num_rows)[tf.newaxis], value=-1)
    np.testing.assert_array_equal(tiles.restore(arranged)[0], np.arange(num_rows))
    taken, positions = [], []
    for step in steps_of(tiles):
        taken.extend(np.ravel(step.rows_of(arranged)))
        positions.extend(np.ravel(step.row_positions()))
    assert sorted(x for x in taken if x >= 0) == list(range(num_rows))
    np.testing.assert_array_equal(taken, [x if 0 <= x < num_rows else -1 for x in positions])


@EXAMPLES
@given(st.integers(1, 30), reaches, tilings)
def test_a_tile_gathers_all_keys_that_its_rows_see(num_rows, reach, tiling):
    tiles = make_tiles(num_rows, 10, [reach], [num_rows], tiling)
    view = reach.view(tiles, num_rows)
    keys = view.arrange(tf.range(num_rows)[tf.newaxis], value=-1)
    seen = {}
    for step in steps_of(tiles):
        rows = step.row_positions().numpy()
        positions = np.broadcast_to(view.positions(step), [len(rows), int(view.window)])
        gathered = np.broadcast_to(view.gather(keys, step)[0], positions.shape)
        is_key = (positions >= 0) & (positions < num_rows)
        np.testing.assert_array_equal(gathered, np.where(is_key, positions, -1))
        exists = view.exists(step)
        shape = [*rows.shape, positions.shape[1]]
        exists = np.ones(shape, bool) if exists is None else np.broadcast_to(exists, shape)
        for tile, row, column in np.argwhere(exists):
            seen.setdefault(rows[tile, row], []).append(positions[tile, column])
    for row in range(num_rows):
        everything = np.arange(num_rows)
        sees = reach.sees(tf.constant(row), tf.range(num_rows))
        expected = everything if sees is None else everything[sees.numpy()]
        assert sorted(seen.get(row, [])) == expected.tolist()


def test_an_unknown_number_of_other_keys_leaves_the_steps_known():
    tiling = Tiling(logits=10_000)
    window = Window(256, 256)

    @tf.function(autograph=False)
    def sizes(number):
        tiles = make_tiles(4096, 12, [window, ALL], [4096, number], tiling)
        assert isinstance(tiles.tiles_per_step, int) and isinstance(tiles.num_steps, int)
        return tiles.step_rows

    alone = make_tiles(4096, 12, [window], [4096], tiling)
    assert sizes(tf.constant(64)) <= alone.step_rows


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
@given(st.integers(1, 5), st.integers(1, 7), st.integers(0, 19), st.integers(0, 2**16))
def test_an_overlapping_sum_is_the_transpose_of_windows(num_tiles, rows, extra, seed):
    rng = np.random.default_rng(seed)
    entries = rng.integers(-9, 9, [num_tiles * rows + extra, 2])
    parts = rng.integers(-9, 9, [num_tiles, rows + extra, 2])
    taken = windows.windows(entries, num_tiles, rows, extra, axis=0)
    added = windows.overlap_add(parts, rows, extra)
    assert np.sum(taken * parts) == np.sum(entries * added)


@st.composite
def bands(draw):
    """Bands as views have them: keys on both sides of the rows, or the rows themselves."""
    left, right, rows = (draw(st.integers(0, 6)), draw(st.integers(0, 6)), draw(st.integers(1, 7)))
    if draw(st.booleans()):
        return windows.Band(left, right, rows, rows, 0)
    before, after = draw(st.integers(0, 8)), draw(st.integers(0, 8))
    return windows.Band(left, right, rows, rows + before + after, before)


@EXAMPLES
@given(bands(), st.integers(0, 2), st.integers(0, 2**16))
def test_a_band_puts_offsets_at_their_columns_and_back(band, num_zeros, seed):
    rng = np.random.default_rng(seed)
    num_offsets = band.left + band.right + 1
    offsets = rng.integers(1, 100, [2, band.rows, num_offsets])
    expected = np.zeros([2, band.rows, band.window], int)
    for row, column in np.ndindex(band.rows, band.window):
        if 0 <= (offset := column - band.own_column - row + band.left) < num_offsets:
            expected[:, row, column] = offsets[:, row, offset]
    padded = np.pad(offsets, [(0, 0), (0, 0), (0, num_zeros)])
    np.testing.assert_array_equal(band.to_columns(padded), expected)
    columns = rng.integers(1, 100, expected.shape)
    back = band.from_columns(columns).numpy()
    assert back.shape[-1] == band.width >= num_offsets
    back = back[..., :num_offsets]
    for row, offset in np.ndindex(band.rows, back.shape[-1]):
        column = offset - band.left + row + band.own_column
        value = columns[:, row, column] if 0 <= column < band.window else 0
        np.testing.assert_array_equal(back[:, row, offset], value)


def test_attention_without_a_tiling_has_the_one_that_is_set():
    queries = tf.random.normal([1, 100, 2, 8])

    def outputs(**options):
        tf.random.set_seed(0)
        options = {"local_radius": 5, "dropout_rate": 0.5, **options}
        return attention.local_attend(queries, queries, queries, **options)

    other = Tiling(rows=16, logits=600)
    expected = outputs(tiling=other)
    before = outputs()
    assert np.any(before != expected)  # Other pairs are dropped, so that a change can be seen.
    set_tiling(other)
    np.testing.assert_array_equal(outputs(), expected)
    np.testing.assert_array_equal(outputs(tiling=Tiling()), before)
