"""Tensor helpers against NumPy, and what they refuse."""

import functools
import weakref

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel import tensor_utils
from tests import memory

FEW_EXAMPLES = settings(max_examples=25)
small_size = st.integers(1, 5)


def counted(*shape):
    """1, 2, 3 … in that shape: no two elements are equal, and none is the padding."""
    return np.arange(1, np.prod(shape) + 1).reshape(shape)


def skewed(rows, pad_value=0):
    """Row i moved right by i, one element at a time: the twin of `skew_elements_right`."""
    height, width = rows.shape
    result = np.full([height, height + width - 1], pad_value)
    for row, column in np.ndindex(height, width):
        result[row, row + column] = rows[row, column]
    return result


@FEW_EXAMPLES
@given(small_size, small_size, st.integers(-3, 3))
def test_skewing_moves_row_i_right_by_i(height, width, pad_value):
    tensor = counted(2, height, width)
    expected = [skewed(rows, pad_value) for rows in tensor]
    actual = tensor_utils.skew_elements_right(tensor, axis=-1, pad_value=pad_value)
    np.testing.assert_array_equal(actual, expected)


@FEW_EXAMPLES
@given(small_size, small_size)
def test_unskewing_undoes_skewing_on_any_axis(height, width):
    tensor = counted(2, height, width, 3)
    skewed_tensor = tensor_utils.skew_elements_right(tensor, axis=2)
    for channel in range(3):
        expected = [skewed(rows[:, :, channel]) for rows in tensor]
        np.testing.assert_array_equal(skewed_tensor[..., channel], expected)
    back = tensor_utils.unskew_elements_right(skewed_tensor, axis=2)
    np.testing.assert_array_equal(back, tensor)


@FEW_EXAMPLES
@given(st.integers(1, 11), small_size, st.sampled_from([1, -2]))
def test_blocks_hold_the_sequence_and_padding_at_the_end(length, block_len, axis):
    tensor = counted(2, length, 3)
    blocks = tensor_utils.split_into_blocks(tensor, block_len, axis, pad_value=-1).numpy()
    num_blocks = -(-length // block_len)
    assert blocks.shape == (2, num_blocks, block_len, 3)
    joined = blocks.reshape(2, num_blocks * block_len, 3)
    np.testing.assert_array_equal(joined[:, :length], tensor)
    assert (joined[:, length:] == -1).all()


@pytest.mark.parametrize("jit_compile", [False, True])
def test_blocks_of_unknown_lengths_keep_the_known_sizes(jit_compile):
    @tf.function(jit_compile=jit_compile, input_signature=[tf.TensorSpec([None, None, 3])])
    def split(tensor):
        blocks = tensor_utils.split_into_blocks(tensor, 4, axis=1)
        assert blocks.shape.as_list()[2:] == [4, 3]
        return blocks

    tensor = counted(2, 6, 3).astype(np.float32)
    expected = tensor_utils.split_into_blocks(tensor, 4, axis=1)
    np.testing.assert_array_equal(split(tensor), expected)


def test_padding_to_a_multiple_fills_the_end_of_the_axis():
    padded = tensor_utils.pad_to_multiple(counted(2, 3), 4, axis=1, constant_values=9)
    np.testing.assert_array_equal(padded, [[1, 2, 3, 9], [4, 5, 6, 9]])
    same = tensor_utils.pad_to_multiple(counted(2, 3), 3, axis=-1)
    np.testing.assert_array_equal(same, counted(2, 3))
    mirrored = tensor_utils.pad_to_multiple(counted(2, 3), 5, axis=1, mode="REFLECT")
    np.testing.assert_array_equal(mirrored[0], [1, 2, 3, 2, 1])


@FEW_EXAMPLES
@given(small_size, small_size)
def test_three_blocks_are_the_block_between_its_neighbors(num_blocks, block_len):
    blocks = counted(2, num_blocks, block_len, 2)
    actual = tensor_utils.concat_3_blocks(blocks)
    nothing = np.zeros_like(blocks[:, 0])
    around = [nothing, *(blocks[:, i] for i in range(num_blocks)), nothing]
    for i in range(num_blocks):
        np.testing.assert_array_equal(actual[:, i], np.concatenate(around[i : i + 3], axis=1))


@FEW_EXAMPLES
@given(small_size, st.integers(-7, 7), st.sampled_from([0, 1, -1]))
def test_shifting_moves_elements_and_fills_with_the_padding(length, amount, axis):
    tensor = counted(length, length)
    expected = np.full([length, length], -5)
    for row, column in np.ndindex(length, length):
        source = [row, column]
        source[axis] -= amount
        if 0 <= source[axis] < length:
            expected[row, column] = tensor[tuple(source)]
    actual = tensor_utils.shift_elements_right(tensor, axis, amount, pad_value=-5)
    np.testing.assert_array_equal(actual, expected)


@FEW_EXAMPLES
@given(small_size, st.lists(st.integers(0, 100), min_size=1, max_size=6), st.integers(0, 2))
def test_one_hot_gathers_are_gathers(depth, numbers, rest_rank):
    params = counted(depth, *[2] * rest_rank).astype(np.float32)
    indices = np.array(numbers) % depth
    np.testing.assert_array_equal(tensor_utils.gather_by_one_hot(params, indices), params[indices])
    square = np.stack([indices, indices[::-1]])
    np.testing.assert_array_equal(tensor_utils.gather_by_one_hot(params, square), params[square])


@pytest.mark.parametrize("batch_dims", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("rest", [[], [3], [3, 2]])
def test_batched_one_hot_gathers_are_batched_gathers(batch_dims, rest):
    if batch_dims == 0:
        params, indices = counted(5, *rest), counted(2, 4) % 5
    elif batch_dims == 1:
        params, indices = counted(2, 5, *rest), counted(2, 3, 4) % 5
    else:
        params, indices = counted(2, 3, 5, *rest), counted(2, 3, 4) % 5
    params = params.astype(np.float32)
    expected = tf.gather(params, indices, batch_dims=2 if batch_dims in (None, -1) else batch_dims)
    actual = tensor_utils.batch_gather_by_one_hot(params, indices, batch_dims)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    "first, last, shape",
    [(0, -1, [24]), (0, 1, [6, 4]), (1, 2, [2, 12]), (-2, -1, [2, 12]), (1, 1, [2, 3, 4])],
)
def test_flattening_merges_the_axes_between_and_including(first, last, shape):
    actual = tensor_utils.flatten_dims(counted(2, 3, 4), first, last)
    np.testing.assert_array_equal(actual, counted(*shape))


def test_flattening_refuses_axes_in_the_wrong_order():
    with pytest.raises(ValueError, match="first_dim=2, last_dim=0"):
        tensor_utils.flatten_dims(counted(2, 3, 4), 2, 0)


def test_the_shape_list_holds_ints_where_the_shape_is_known():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def trace(tensor):
        rows, columns = tensor_utils.get_shape_list(tensor)
        assert tf.is_tensor(rows) and columns == 3 and isinstance(columns, int)
        return rows

    assert trace(np.zeros([5, 3], np.float32)) == 5
    assert tensor_utils.get_shape_list(np.zeros([5, 3]), expected_rank=[2, 3]) == [5, 3]


def test_a_wrong_rank_is_named():
    with pytest.raises(ValueError, match=r"`mask` must have rank 2 or 3. Received shape \(1,\)"):
        tensor_utils.get_shape_list([1], expected_rank=[2, 3], name="mask")
    with pytest.raises(ValueError, match=r"must have rank 2. Received shape \(1, 1, 1\)"):
        tensor_utils.assert_rank(tf.zeros([1, 1, 1]), 2)
    tensor_utils.assert_rank(tf.zeros([1, 1]), 2)


MATRIX = np.zeros([2, 6])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: tensor_utils.flatten_dims(counted(2, 3, 4), first_dim=3), "first_dim=3"),
        (lambda: tensor_utils.flatten_dims(counted(2, 3, 4), last_dim=-4), "last_dim=-4"),
        (lambda: tensor_utils.split_into_blocks(MATRIX, 2, axis=5), "axis=5"),
        (lambda: tensor_utils.pad_to_multiple(MATRIX, 2, axis=2), "axis=2"),
        (lambda: tensor_utils.pad_to_multiple(MATRIX, 2, axis=-3), "axis=-3"),
        (lambda: tensor_utils.shift_elements_right(MATRIX, axis=2), "axis=2"),
        (lambda: tensor_utils.skew_elements_right(MATRIX, axis=2), "axis=2"),
        (lambda: tensor_utils.unskew_elements_right(MATRIX, axis=-3), "axis=-3"),
    ],
)
def test_an_axis_out_of_range_is_refused(call, message):
    with pytest.raises(
        ValueError, match=rf"must be an axis of the tensor, from -\d to \d.*{message}"
    ):
        call()


@pytest.mark.parametrize("axis", [0, -2])
def test_skewing_needs_rows_before_the_axis(axis):
    for skew in (tensor_utils.skew_elements_right, tensor_utils.unskew_elements_right):
        with pytest.raises(ValueError, match=f"`axis` must not be the first.*axis={axis}"):
            skew(MATRIX, axis=axis)


@pytest.mark.parametrize("number", [0, -3])
def test_a_factor_or_a_block_length_below_1_is_refused(number):
    with pytest.raises(ValueError, match=f"`factor` must be at least 1. Received: factor={number}"):
        tensor_utils.pad_to_multiple(MATRIX, number, axis=1)
    with pytest.raises(ValueError, match=f"`block_len` must be at least 1.*block_len={number}"):
        tensor_utils.split_into_blocks(MATRIX, number, axis=1)


@pytest.mark.parametrize("batch_dims", [3, -3])
def test_batch_dims_that_the_tensors_lack_are_refused(batch_dims):
    with pytest.raises(ValueError, match=rf"\(4, 5\) and indices \(4, 2\).*{batch_dims}"):
        tensor_utils.batch_gather_by_one_hot(np.zeros([4, 5]), np.zeros([4, 2], int), batch_dims)


def test_blocks_without_positions_are_refused():
    with pytest.raises(ValueError, match=r"`blocked_seq` must be .*Received shape \(2, 6\)"):
        tensor_utils.concat_3_blocks(MATRIX)


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("...ij,...jk->...ik", [(2, 5, 3, 4), (2, 5, 4, 6)]),
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("a...b,bc...->a...c", [(2, 5, 3), (3, 4, 5)]),
        ("b...,b...->...", [(2, 3, 4), (2, 3, 4)]),
    ],
)
def test_ellipses_of_an_einsum_stand_for_any_axes(equation, shapes):
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape) for shape in shapes]
    actual = tensor_utils.einsum_wrap_ellipses(equation, *inputs, name="product")
    np.testing.assert_allclose(actual, np.einsum(equation, *inputs))


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("...ij,...jk->ik", [(2, 3, 4), (2, 4, 5)]),
        ("ij,jk->ik", [(3, 4), (3, 5)]),
        ("i...j...->ij...", [(2, 3, 4)]),
        ("ij->ij->ij", [(3, 4)]),
    ],
)
def test_a_wrong_equation_is_a_value_error(equation, shapes, in_graph):
    product = functools.partial(tensor_utils.einsum_wrap_ellipses, equation)
    with pytest.raises(ValueError, match="" if in_graph else r"(equation|format)\b.*->"):
        (tf.function(product) if in_graph else product)(*map(np.zeros, shapes))


def test_gelu_is_the_tanh_approximation():
    x = np.linspace(-4, 4, 33).astype(np.float32)
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(tensor_utils.gelu(x), expected, atol=1e-6)


def test_activations_are_found_by_name():
    x = np.array([-1.0, 2.0], np.float32)
    expected = {"relu": np.maximum(x, 0), "Tanh": np.tanh(x), "GELU": tensor_utils.gelu(x)}
    for name, value in expected.items():
        np.testing.assert_allclose(tensor_utils.get_activation(name)(x), value, atol=1e-6)
    for nothing in ("linear", "", None):
        assert tensor_utils.get_activation(nothing) is None
    assert tensor_utils.get_activation(tf.sin) is tf.sin


def test_an_unknown_activation_is_refused():
    with pytest.raises(
        ValueError, match="'swoosh'; choose one of gelu, gelu_exact, linear, relu, tanh"
    ):
        tensor_utils.get_activation("swoosh")


def test_fewer_columns_than_skewing_gives_are_refused():
    with pytest.raises(ValueError, match=r"here at least 4. Received: axis=1, shape \(4, 3\)"):
        tensor_utils.unskew_elements_right(tf.ones([4, 3]), axis=1)


class TestSizesThatAreUnknownWhenTracing:
    def test_a_graph_has_them_once(self):
        @tf.function(input_signature=[tf.TensorSpec([None, None])], autograph=False)
        def area(x):
            return tensor_utils.get_shape_list(x)[0] * tensor_utils.get_shape_list(x)[1]

        kinds = [x.type for x in area.get_concrete_function().graph.get_operations()]
        assert kinds.count("Shape") == 1
        assert area(tf.zeros([2, 3])) == 6

    def test_a_branch_does_not_share_its_own(self):
        @tf.function(input_signature=[tf.TensorSpec([None, None])], autograph=False)
        def rows(x):
            def ask():
                return tensor_utils.get_shape_list(x)[0]

            return tf.cond(tf.size(x) > 6, ask, lambda: 2 * ask()), ask()

        assert [int(size) for size in rows(tf.zeros([2, 3]))] == [4, 2]
        assert [int(size) for size in rows(tf.zeros([4, 3]))] == [4, 4]

    def test_neither_does_a_branch_or_a_loop_of_tensorflow_1(self, of_tensorflow_1):
        x = tf.compat.v1.placeholder(tf.float32, [None, None])

        def ask():
            return tensor_utils.get_shape_list(x)[0] + 0

        chosen = tf.compat.v1.cond(tf.size(x) > 6, ask, lambda: 2 * ask())
        count = tf.compat.v1.while_loop(lambda i: i < 5, lambda i: i + ask(), [0])
        with tf.compat.v1.Session() as session:
            found = session.run([chosen, count, ask()], {x: np.zeros([2, 3])})
        assert found == [4, 6, 2]

    def test_those_of_keras_tensors_are_not_kept_by_the_process(self):
        x = tf_keras.Input([None])
        output = tf.reshape(x, [1, tensor_utils.get_shape_list(x)[0] * 4])
        assert tf_keras.Model(x, output)(tf.zeros([2, 4])).shape == [1, 8]
        kept = weakref.ref(x)
        del x, output
        memory.collect_garbage()
        assert kept() is None


@pytest.fixture
def of_tensorflow_1():
    """A graph with the control flow of TensorFlow 1."""
    tf.compat.v1.disable_control_flow_v2()
    with tf.Graph().as_default():
        yield
    tf.compat.v1.enable_control_flow_v2()
