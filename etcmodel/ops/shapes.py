"""Static and dynamic shapes, and numbers computed from them."""

import numpy as np
import tensorflow as tf

from etcmodel.ops.compilation import is_compiled_whole


def get_shape_list(tensor, expected_rank=None, name=None):
    """Returns the shape as a list: int where known when tracing, else a scalar tensor.

    Args:
        tensor: any tensor with a known rank.
        expected_rank: int or list of ints that the rank must be one of.
        name: used in the error message.
    Raises:
        ValueError: if the rank is not an expected one.

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.get_shape_list(tf.zeros([2, 3]), expected_rank=2)
    [2, 3]
    """
    tensor = tf.convert_to_tensor(tensor)
    if expected_rank is not None:
        assert_rank(tensor, expected_rank, name)
    static = tensor.shape.as_list()
    if None not in static:
        return static
    dynamic = _sizes(tensor)
    return [dynamic[i] if size is None else size for i, size in enumerate(static)]


def _sizes(tensor):
    """The sizes of all axes as scalar tensors, for a graph the same ones each time.

    In a graph of unknown lengths, most operations would be about shapes otherwise.
    """
    graph = tf.compat.v1.get_default_graph()
    if not _may_keep(graph):
        return tf.unstack(tf.shape(tensor))
    if not hasattr(graph, "sizes_of_etcmodel"):
        graph.sizes_of_etcmodel = {}
    asked = graph.sizes_of_etcmodel
    if id(tensor) not in asked:  # With the tensor, so that no other gets its id.
        asked[id(tensor)] = tensor, tf.unstack(tf.shape(tensor))
    return asked[id(tensor)][1]


def _may_keep(graph):
    """Whether sizes may be used later in a graph, which lives no longer than its tensors.

    Keras's symbolic tensors have no graph: theirs would be kept by the process's own. What XLA
    compiles as a whole must not share its sizes with the rest, and the branches and loops of
    TensorFlow 1, which are in the graph itself, cannot.
    """
    if tf.executing_eagerly() or is_compiled_whole():
        return False
    return graph._get_control_flow_context() is None


def assert_rank(tensor, expected_rank, name=None):
    """Checks the rank of `tensor`.

    Raises:
        ValueError: if it is not `expected_rank` (an int, or one of a list).

    >>> from etcmodel import tensor_utils
    >>> tensor_utils.assert_rank(tf.zeros([2, 3]), expected_rank=[2, 3])
    >>> tensor_utils.assert_rank(tf.zeros([2, 3]), expected_rank=1)
    Traceback (most recent call last):
        ...
    ValueError: `tensor` must have rank 1. Received shape (2, 3)
    """
    allowed = [expected_rank] if isinstance(expected_rank, int) else list(expected_rank)
    if tensor.shape.rank not in allowed:
        raise ValueError(
            f"`{name or getattr(tensor, 'name', 'tensor')}` must have rank "
            f"{' or '.join(map(str, allowed))}. Received shape {tensor.shape}"
        )


def pad_axis(x, axis, before=0, after=0, value=0):
    """Pads one axis, not negative; `before` and `after` are int or scalar tensors."""
    if isinstance(before, int) and isinstance(after, int) and not (before or after):
        return x
    ends = np.zeros([2, len(x.shape), 2], np.int32)
    ends[0, axis, 0] = ends[1, axis, 1] = 1
    padded = tf.pad(x, before * ends[0] + after * ends[1], constant_values=value)
    return _with_shape_of(x, padded, axis)


def slice_axis(x, axis, begin, length):
    """`length` entries along one axis, not negative; both are int or scalar tensors.

    The other axes are whole by -1, not by their sizes: with these XLA slices wrongly where `x` is
    known when it compiles and `length` belongs to a loop. They begin at zeros that XLA knows, else
    it would not know their sizes either.
    """
    begins, sizes = [0] * len(x.shape), [-1] * len(x.shape)
    begins[axis], sizes[axis] = begin, length
    sliced = tf.slice(x, begins, sizes)
    return _with_shape_of(x, sliced, axis, length if isinstance(length, int) else None)


def _with_shape_of(x, changed, axis, size=None):
    """`changed` with the known sizes of `x`, but for one axis."""
    changed.set_shape([*x.shape[:axis], size, *x.shape[axis + 1 :]])
    return changed


def ceil_div(number, divisor):
    """The quotient of ints or scalar tensors, rounded up."""
    return -(-number // divisor)


def check_positive(**sizes):
    """Raises ValueError, naming the size, if one is known to be below 1; ignores None."""
    for name, size in sizes.items():
        if size is not None and not tf.is_tensor(size) and size < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={size}")


def at_least(limit, number):
    """The larger of an int and an int or scalar tensor."""
    return max(limit, number) if isinstance(number, int) else tf.maximum(limit, number)


def at_most(number, limit):
    """The smaller of two ints or scalar tensors."""
    if isinstance(number, int) and isinstance(limit, int):
        return min(number, limit)
    return tf.minimum(number, limit)
