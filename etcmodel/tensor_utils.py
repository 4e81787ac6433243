"""Tensor helpers shared by the layers and the feature functions."""

import functools

import tensorflow as tf
import tf_keras

from etcmodel import shown_values
from etcmodel.ops.activations import gelu, gelu_exact
from etcmodel.ops.shapes import assert_rank, check_positive, get_shape_list

__all__ = [
    "assert_rank",
    "batch_gather_by_one_hot",
    "concat_3_blocks",
    "einsum_wrap_ellipses",
    "flatten_dims",
    "gather_by_one_hot",
    "gelu",
    "get_activation",
    "get_shape_list",
    "pad_to_multiple",
    "shift_elements_right",
    "skew_elements_right",
    "split_into_blocks",
    "unskew_elements_right",
]


def _axis(tensor, **axis):
    """Converts an axis, which may count from the end, to one from 0; ValueError if out of range."""
    ((name, value),) = axis.items()
    rank = tensor.shape.rank
    if not -rank <= value < rank:
        raise ValueError(
            f"`{name}` must be an axis of the tensor, from {-rank} to {rank - 1}. Received: "
            f"{name}={value}, shape {tensor.shape}"
        )
    return value % rank


def _shape_around(tensor, axis):
    """The shape in three lists: before the rows, the rows and the columns at `axis`, after."""
    shape = get_shape_list(tensor)
    return shape[: axis - 1], shape[axis - 1 : axis + 1], shape[axis + 1 :]


def _axis_after_rows(tensor, axis):
    """Like `_axis`, for an axis that needs another one before it."""
    number = _axis(tensor, axis=axis)
    if number == 0:
        raise ValueError(
            f"`axis` must not be the first: its rows are the axis before it. Received: {axis=}, "
            f"shape {tensor.shape}"
        )
    return number


def flatten_dims(tensor, first_dim=0, last_dim=-1, name=None):
    """Merges the axes `first_dim` to `last_dim` (both included) into one.

    Raises:
        ValueError: if there is no such axis, or the first is after the last.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.flatten_dims(tf.zeros([2, 3, 4, 5]), first_dim=1, last_dim=2).shape
    TensorShape([2, 12, 5])
    """
    with tf.name_scope(name or "flatten_dims"):
        tensor = tf.convert_to_tensor(tensor)
        first, last = _axis(tensor, first_dim=first_dim), _axis(tensor, last_dim=last_dim)
        if first > last:
            raise ValueError(
                f"`first_dim` is after `last_dim`. Received: {first_dim=}, {last_dim=}"
            )
        shape = get_shape_list(tensor)
        merged = functools.reduce(lambda a, b: a * b, shape[first : last + 1])
        return tf.reshape(tensor, [*shape[:first], merged, *shape[last + 1 :]])


def gather_by_one_hot(params, indices, name=None):
    """`tf.gather(params, indices)` as a matrix product, for devices where gathers are slow.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.gather_by_one_hot(tf.constant([1.0, 2.0, 3.0]), [2, 0]).numpy()
    array([3., 1.], dtype=float32)
    """
    with tf.name_scope(name or "gather_by_one_hot"):
        params = tf.convert_to_tensor(params)
        depth = get_shape_list(params)[0]
        one_hot = tf.one_hot(indices, depth, dtype=params.dtype)
        return tf.tensordot(one_hot, params, axes=1)


def batch_gather_by_one_hot(params, indices, batch_dims=None, name=None):
    """`tf.gather(params, indices, batch_dims=batch_dims)` as a matrix product.

    Args:
        params: [batch dims..., depth, rest...].
        indices: int [batch dims..., indices...].
        batch_dims: number of common leading axes; by default all of `indices` but the last. A
            negative number counts from the rank of `indices`.
        name: name of the operation.
    Raises:
        ValueError: if there are fewer axes.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.batch_gather_by_one_hot([[1.0, 2.0], [3.0, 4.0]], [[1, 1], [0, 1]]).numpy()
    array([[2., 2.],
           [3., 4.]], dtype=float32)
    """
    with tf.name_scope(name or "batch_gather_by_one_hot"):
        params, indices = tf.convert_to_tensor(params), tf.convert_to_tensor(indices)
        batch_dims = _num_batch_dims(params, indices, batch_dims)
        shape, index_shape = get_shape_list(params), get_shape_list(indices)
        one_hot = tf.one_hot(indices, shape[batch_dims], dtype=params.dtype)
        rows = tf.reshape(one_hot, [*shape[:batch_dims], -1, shape[batch_dims]])
        columns = tf.reshape(params, [*shape[: batch_dims + 1], -1])
        result = tf.matmul(rows, columns)
        return tf.reshape(result, [*index_shape, *shape[batch_dims + 1 :]])


def _num_batch_dims(params, indices, batch_dims):
    rank = indices.shape.rank
    number = rank - 1 if batch_dims is None else batch_dims + (rank if batch_dims < 0 else 0)
    if not 0 <= number <= min(rank, params.shape.rank - 1):
        raise ValueError(
            f"`batch_dims` does not fit params {params.shape} and indices {indices.shape}. "
            f"Received: {batch_dims=}"
        )
    return number


def pad_to_multiple(tensor, factor, axis, mode="CONSTANT", constant_values=0, name=None):
    """Pads the end of `axis` until its length is a multiple of `factor`.

    Raises:
        ValueError: if there is no such axis, or `factor` is below 1.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.pad_to_multiple(tf.constant([[1, 2, 3]]), factor=4, axis=1).numpy()
    array([[1, 2, 3, 0]], dtype=int32)
    """
    with tf.name_scope(name or "pad_to_multiple"):
        tensor = tf.convert_to_tensor(tensor)
        axis = _axis(tensor, axis=axis)
        check_positive(factor=factor)
        padding = [[0, 0]] * tensor.shape.rank
        padding[axis] = [0, -get_shape_list(tensor)[axis] % factor]
        if padding[axis][1] == 0 and isinstance(padding[axis][1], int):
            return tensor
        return tf.pad(tensor, padding, mode=mode, constant_values=constant_values)


def split_into_blocks(tensor, block_len, axis, pad_value=0, name=None):
    """Splits `axis` into [num_blocks, block_len], the last block filled up with `pad_value`.

    Raises:
        ValueError: if there is no such axis, or `block_len` is below 1.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.split_into_blocks(tf.constant([[1, 2, 3]]), block_len=2, axis=1).numpy()
    array([[[1, 2],
            [3, 0]]], dtype=int32)
    """
    with tf.name_scope(name or "split_into_blocks"):
        tensor = tf.convert_to_tensor(tensor)
        axis = _axis(tensor, axis=axis)
        check_positive(block_len=block_len)
        # Taken before padding, which hides known lengths if its amount is unknown.
        shape = get_shape_list(tensor)
        num_blocks = -(-shape[axis] // block_len)
        tensor = pad_to_multiple(tensor, block_len, axis, constant_values=pad_value)
        return tf.reshape(tensor, [*shape[:axis], num_blocks, block_len, *shape[axis + 1 :]])


def concat_3_blocks(blocked_seq, name=None):
    """Concatenates each block with both neighbors (zeros if there is none).

    Args:
        blocked_seq: [batch, num_blocks, block_len, ...].
        name: name of the operation.
    Returns:
        [batch, num_blocks, 3 * block_len, ...].
    Raises:
        ValueError: if the rank is below 3.

    >>> from etcmodel import tensor_utils
    >>> blocks = tf.constant([[[1, 2], [3, 4], [5, 6]]])
    >>> tensor_utils.concat_3_blocks(blocks).numpy()[0]
    array([[0, 0, 1, 2, 3, 4],
           [1, 2, 3, 4, 5, 6],
           [3, 4, 5, 6, 0, 0]], dtype=int32)
    """
    with tf.name_scope(name or "concat_3_blocks"):
        blocked_seq = tf.convert_to_tensor(blocked_seq)
        if blocked_seq.shape.rank < 3:
            raise ValueError(
                "`blocked_seq` must be [batch, num_blocks, block_len, ...]. Received shape "
                f"{blocked_seq.shape}"
            )
        num_blocks = get_shape_list(blocked_seq)[1]
        padding = [[0, 0]] * blocked_seq.shape.rank
        padding[1] = [1, 1]
        padded = tf.pad(blocked_seq, padding)
        parts = [padded[:, start : start + num_blocks] for start in range(3)]
        return tf.concat(parts, axis=2)


def shift_elements_right(tensor, axis=-1, amount=1, pad_value=0, name=None):
    """Shifts along `axis` by `amount` (negative: left), filling with `pad_value`.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.shift_elements_right(tf.constant([1, 2, 3]), amount=1).numpy()
    array([0, 1, 2], dtype=int32)
    """
    with tf.name_scope(name or "shift_elements_right"):
        tensor = tf.convert_to_tensor(tensor)
        axis = _axis(tensor, axis=axis)
        padding = [[0, 0]] * tensor.shape.rank
        padding[axis] = [max(amount, 0), max(-amount, 0)]
        padded = tf.pad(tensor, padding, constant_values=pad_value)
        begin = [0] * tensor.shape.rank
        begin[axis] = max(-amount, 0)
        return tf.slice(padded, begin, tf.shape(tensor))


def skew_elements_right(tensor, axis, pad_value=0, name=None):
    """Shifts row i of a matrix right by i; rows are the axis before `axis`.

    Done by padding and reshaping: a row that is one column wider than the stride it is read with
    moves one to the right of the row above.

    Args:
        tensor: [..., rows, columns, ...], where `axis` is that of the columns.
        axis: int, not 0.
        pad_value: value of the entries shifted in.
        name: name of the operation.
    Returns:
        [..., rows, rows + columns - 1, ...].
    Raises:
        ValueError: if there is no such axis, or it is the first.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.skew_elements_right(tf.constant([[1, 2], [3, 4]]), axis=1).numpy()
    array([[1, 2, 0],
           [0, 3, 4]], dtype=int32)
    """
    with tf.name_scope(name or "skew_elements_right"):
        tensor = tf.convert_to_tensor(tensor)
        axis = _axis_after_rows(tensor, axis)
        before, (rows, columns), after = _shape_around(tensor, axis)
        padding = [[0, 0]] * tensor.shape.rank
        padding[axis] = [0, rows]
        padded = tf.pad(tensor, padding, constant_values=pad_value)
        flat = tf.reshape(padded, [*before, rows * (rows + columns), *after])
        flat = _slice_axis(flat, axis - 1, rows * (rows + columns - 1))
        return tf.reshape(flat, [*before, rows, rows + columns - 1, *after])


def unskew_elements_right(tensor, axis, name=None):
    """Undoes `skew_elements_right`: `rows + columns - 1` columns become `columns` again.

    Raises:
        ValueError: if there is no such axis, it is the first, or has fewer columns than rows.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.unskew_elements_right(tf.constant([[1, 2, 0], [0, 3, 4]]), axis=1).numpy()
    array([[1, 2],
           [3, 4]], dtype=int32)
    """
    with tf.name_scope(name or "unskew_elements_right"):
        tensor = tf.convert_to_tensor(tensor)
        axis = _axis_after_rows(tensor, axis)
        before, (rows, width), after = _shape_around(tensor, axis)
        if isinstance(width, int) and isinstance(rows, int) and width < rows:
            raise ValueError(
                f"`axis` must have rows + columns - 1 columns, here at least {rows}. Received: "
                f"{axis=}, shape {tensor.shape}"
            )
        flat = tf.reshape(tensor, [*before, rows * width, *after])
        padding = [[0, 0]] * flat.shape.rank
        padding[axis - 1] = [0, rows]
        padded = tf.reshape(tf.pad(flat, padding), [*before, rows, width + 1, *after])
        return _slice_axis(padded, axis, width - rows + 1)


def _slice_axis(tensor, axis, size):
    """The first `size` elements along `axis`."""
    index = [slice(None)] * tensor.shape.rank
    index[axis] = slice(0, size)
    return tensor[tuple(index)]


def einsum_wrap_ellipses(equation, *inputs, **kwargs):
    """`tf.einsum`, in which `...` stands for any further axes.

    Args:
        equation: str, such as "...ij,...jk->...ik".
        *inputs: tensors.
        **kwargs: as for `tf.einsum`.
    Raises:
        ValueError: if the equation is malformed, or does not fit the tensors.

    >>> from etcmodel import tensor_utils
    >>> one, other = tf.ones([7, 2, 3]), tf.ones([7, 3, 4])
    >>> tensor_utils.einsum_wrap_ellipses("...ij,...jk->...ik", one, other).shape
    TensorShape([7, 2, 4])
    """
    try:
        return tf.einsum(equation, *inputs, **kwargs)
    # What a graph says by a ValueError.
    except (tf.errors.InvalidArgumentError, tf.errors.InternalError) as error:
        raise ValueError(
            f"The equation {shown_values.shown(equation)} does not fit tensors of the "
            f"shapes {[tuple(tf.convert_to_tensor(x).shape) for x in inputs]}: "
            f"{error.message.splitlines()[0].rpartition('}} ')[2]}"
        ) from error


# Keras's own functions if there are any: layers can serialize those.
_ACTIVATIONS = {
    "gelu": gelu,
    "gelu_exact": gelu_exact,
    "linear": None,
    "relu": tf_keras.activations.relu,
    "tanh": tf_keras.activations.tanh,
}


def get_activation(activation_string):
    """Returns an activation by name: gelu (tanh approximation), gelu_exact, relu, tanh or linear.

    For linear it is None.

    Anything that is not a string is returned unchanged, so that a function may be given.

    Raises:
        ValueError: if the name is unknown.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.get_activation("relu")(tf.constant([-1.0, 2.0])).numpy()
    array([0., 2.], dtype=float32)
    """
    if not isinstance(activation_string, str):
        return activation_string
    if not activation_string:
        return None
    try:
        return _ACTIVATIONS[activation_string.lower()]
    except KeyError:
        known = ", ".join(sorted(_ACTIVATIONS))
        raise ValueError(
            f"Unknown activation {shown_values.shown(activation_string)}; choose one of {known}"
        ) from None
