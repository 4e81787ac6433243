"""Checks arguments: one readable line instead of an error of some operation deep inside."""

import numpy as np
import tensorflow as tf

from etcmodel.ops.errors import fail

__all__ = [
    "check",
    "check_not_empty",
    "check_range",
    "check_returned",
    "check_shapes",
    "checked_ids",
    "checked_mask",
    "fail",
    "in_range",
    "mask_of",
    "table_ids",
    "whole",
    "whole_ids",
]


def check(condition, message, *found, asserts):
    """Checks a condition now if its value is known, else when the graph runs.

    Args:
        condition: bool, or bool scalar tensor.
        message: str. Names the argument and what is expected.
        *found: str, int or int tensor. Appended to the message.
        asserts: list. In a graph, the checking operation is appended to it. It raises
            `tf.errors.InvalidArgumentError`; code compiled by XLA omits it.
    Raises:
        ValueError: if the condition is known to be false.
    """
    if not isinstance(condition, bool) and not tf.executing_eagerly():
        asserts.append(tf.debugging.Assert(condition, [message, *found], summarize=8))
    elif not condition:
        shown = [x.numpy().tolist() if tf.is_tensor(x) else x for x in found]
        fail(" ".join(map(str, [message, *shown])))


@tf.autograph.experimental.do_not_convert
def check_shapes(tensors, axes, sizes=None, asserts=None):
    """Checks that tensors have the expected axes, and that each axis has one size in all of them.

    The size of an axis is that in `sizes`, or else that of the first tensor with the axis. Sizes
    that are known when tracing are always compared, at no cost; the others only with `asserts`.

    Args:
        tensors: dict of argument name to tensor, checked in this order; None is skipped.
        axes: dict of argument name to the names of its axes, such as "batch long_len". "batch?" is
            an axis of size `batch` or 1, "edges*" an axis of any size, and a number an axis of that
            size.
        sizes: dict of axis name to int, or None.
        asserts: see `check`. None: sizes known only when a graph runs are not checked.
    Returns:
        dict of axis name to size: int, or with `asserts` a scalar tensor; None if unknown.
    Raises:
        ValueError: naming the argument, the expected shape and the shape received.
    """
    sizes = dict(sizes or {})
    for name, tensor in tensors.items():
        if tensor is not None:
            _check_shape(name, tensor, axes[name].split(), sizes, asserts)
    return sizes


def check_not_empty(name, length, *, asserts):
    """Checks that a text has at least one token.

    Args:
        name: str. Name of the argument.
        length: int, int scalar tensor, or None if it is not known.
        asserts: see `check`.
    Raises:
        ValueError: naming the argument.
    """
    if length is not None:
        words = f"`{name}` must have at least one token. Received length:"
        check(length > 0, words, length, asserts=asserts)


def check_returned(what, found, dtype):
    """Checks the type of what a method returned, which may be that of a user's class.

    Args:
        what: str. The class and the method.
        found: what it returned.
        dtype: `tf.DType`. What it must return a tensor of.
    Raises:
        ValueError: naming the method and the type.
    """
    received = getattr(found, "dtype", None)
    if received is None or tf.as_dtype(received) != dtype:
        received = type(found).__name__ if received is None else tf.as_dtype(received).name
        fail(f"`{what}` must return {dtype.name}. Received: {received}")


def check_range(name, ids, least, limit, words, *, asserts):
    """Checks that ids are whole numbers, at least `least` and, unless it is None, below `limit`.

    Args:
        name: str. Name of the argument.
        ids: int or float tensor. Its first axis is the batch, if it has more than one.
        least: int.
        limit: int, int scalar tensor or None.
        words: str. The meaning of the limit, for the message.
        asserts: see `check`.
    Raises:
        ValueError: naming the argument, the limit, the extremes, the first wrong id and its row.
    """
    if not isinstance(ids, np.ndarray):
        ids = tf.convert_to_tensor(ids)
    is_float = tf.as_dtype(ids.dtype).is_floating
    if is_float and tf.as_dtype(ids.dtype).size < 4:
        ids = tf.cast(ids, tf.float32)  # Limits are rounded in fewer digits.
    wish = f"`{name}` must be {'whole, ' if is_float else ''}at least {least}"
    wish += "" if limit is None else f" and below {words}"
    if _is_known(ids) and _is_known(limit):
        # NumPy, since a call of small operations would take longer than a small model's embeddings.
        ids = np.asarray(ids)
        # Tests for valid ids, as no comparison with NaN is true.
        is_right = (ids >= least) if limit is None else (ids >= least) & (ids < int(limit))
        is_right &= np.floor(ids) == ids if is_float else True
        if not is_right.all():
            index = np.argwhere(~is_right)[0]
            row = f", {ids[tuple(index)]} in row {index[0]} of the batch" if len(index) > 1 else ""
            fail(f"{wish}. Received values from {ids.min()} to {ids.max()}{row}")
        return
    # For Keras's symbolic tensors, which are in no graph, only what runs inside layers is checked.
    if not tf.executing_eagerly() and tf.TensorShape(ids.shape).num_elements() != 0:
        asserts.append(_assert_in_range(ids, least, limit, f"{wish}. Received values from"))


def checked_ids(name, ids, num_rows, words, *, asserts):
    """Returns ids as an int32 or int64 tensor, after checking them.

    Args:
        name: str. Name of the argument.
        ids: tensor, or anything convertible to one. Whole numbers may be stored as floats.
        num_rows: int. Rows of the table that the ids refer to.
        words: str. The number and its meaning, for the message.
        asserts: see `check`.
    Raises:
        ValueError: naming the argument, if ids are not whole numbers; or see `check_range`.
    """
    ids = tf.convert_to_tensor(ids)
    if not (ids.dtype.is_integer or ids.dtype.is_floating):
        fail(f"`{name}` must be integers. Received: {ids.dtype.name}")
    if ids.dtype.is_integer and ids.dtype != tf.int64:
        ids = tf.saturate_cast(ids, tf.int32)
    check_range(name, ids, 0, num_rows, words, asserts=asserts)
    return tf.cast(ids, tf.int32) if ids.dtype.is_floating else ids


def checked_mask(name, mask, kinds, *, asserts):
    """Returns a mask, after checking that it has only the values 0, 1 …, one per kind.

    Args:
        name: str. Name of the argument.
        mask: bool, int or float tensor, or anything convertible to one. A mask of bools has no
            other values, and costs nothing.
        kinds: tuple of str. The meaning of 0, 1 …, for the message.
        asserts: see `check`. Code compiled by XLA omits the check: there, with two kinds, any
            nonzero value counts as 1.
    Returns:
        bool tensor, or int32 for more than two kinds.
    Raises:
        ValueError: naming the argument and the first wrong value, such as -10000 of a mask for
            adding to logits, a fraction or NaN.
    """
    mask = tf.convert_to_tensor(mask)
    if not (mask.dtype.is_bool or mask.dtype.is_integer or mask.dtype.is_floating):
        fail(f"`{name}` must be a mask of 0 and 1. Received: {mask.dtype.name}")
    if not mask.dtype.is_bool:
        meanings = ", ".join(f"{number}: {kind}" for number, kind in enumerate(kinds))
        words = f"{len(kinds)} ({meanings})"
        check_range(name, mask, 0, len(kinds), words, asserts=asserts)
    return tf.cast(mask, tf.bool if len(kinds) == 2 else tf.int32)


@tf.autograph.experimental.do_not_convert
def mask_of(name, mask, kinds=("may not attend", "may attend")):
    """Returns a mask as bools after `checked_mask`; in a graph, checks when it runs."""
    asserts = []
    mask = checked_mask(name, mask, kinds, asserts=asserts)
    if not asserts:
        return mask
    with tf.control_dependencies(asserts):
        return tf.identity(mask)


@tf.autograph.experimental.do_not_convert
def table_ids(name, ids, num_rows, entry):
    """Returns ids after `checked_ids`; in a graph, checks when it runs.

    Args:
        name, ids, num_rows: see there.
        entry: str. The setting for the number of rows.
    """
    asserts = []
    ids = checked_ids(name, ids, num_rows, f"`{entry}`, {num_rows}", asserts=asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(ids)


@tf.autograph.experimental.do_not_convert
def whole_ids(name, ids):
    """Returns ids of any range as a tensor; those stored as floats after `whole`."""
    ids = tf.convert_to_tensor(ids)
    if ids.dtype.is_floating:
        return whole(name, ids)
    if not (ids.dtype.is_integer or ids.dtype.is_bool):
        fail(f"`{name}` must be integers. Received: {ids.dtype.name}")
    return ids


def _is_known(limit):
    return not tf.is_tensor(limit) or isinstance(limit, tf.__internal__.EagerTensor)


def _assert_in_range(ids, least, limit, message):
    """In a graph, raises the message with the first wrong id and its row."""
    ids = tf.convert_to_tensor(ids)
    is_right = ids >= tf.cast(least, ids.dtype)
    if limit is not None:
        is_right &= ids < tf.cast(limit, ids.dtype)
    if ids.dtype.is_floating:
        is_right &= tf.equal(tf.floor(ids), ids)

    def fails():  # The message's details are found only here, so that right ids cost little.
        number = tf.argmax(tf.reshape(tf.cast(~is_right, tf.int32), [-1]))
        found = [tf.reduce_min(ids), "to", tf.reduce_max(ids)]
        if ids.shape.rank != 1:
            length = tf.size(ids, tf.int64) // tf.shape(ids, tf.int64)[0]
            found += [tf.gather(tf.reshape(ids, [-1]), number), "in row", number // length]
        return tf.debugging.Assert(False, [message, *found])

    return tf.cond(tf.reduce_all(is_right), tf.no_op, fails)


@tf.autograph.experimental.do_not_convert
def in_range(name, ids, least, limit, words):
    """Returns the ids, an int tensor, after `check_range`; in a graph, checks when it runs."""
    asserts = []
    check_range(name, ids, least, limit, words, asserts=asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(ids)


@tf.autograph.experimental.do_not_convert
def whole(name, numbers):
    """Returns a float tensor after checking its numbers to be whole; in a graph, when it runs.

    Code compiled by XLA cannot raise.

    Raises:
        ValueError: naming the argument and the largest number that is not.
    """
    is_wrong = tf.not_equal(numbers - tf.floor(numbers), 0)  # Also of infinity and NaN.
    wrong = tf.reduce_max(tf.where(is_wrong, numbers, numbers.dtype.min))
    asserts, words = [], f"`{name}` must be whole numbers. Received:"
    check(tf.logical_not(tf.reduce_any(is_wrong)), words, wrong, asserts=asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(numbers)


def _check_shape(name, tensor, axes, sizes, asserts):
    wanted = [_wanted(axis, sizes) for axis in axes]
    if isinstance(tensor, (tf.RaggedTensor, tf.SparseTensor)):
        kind, shape = type(tensor).__name__, _listed(tensor.shape)
        fail(f"{_wish(name, axes, wanted)}, padded. Received: a {kind} of shape {shape}")
    try:
        shape = _shape_of(tensor)
    except (ValueError, TypeError, tf.errors.InvalidArgumentError):
        fail(f"{_wish(name, axes, wanted)}, padded. Received: what no tensor can be made of")
    if shape.rank is None:
        return
    found = shape.as_list()
    if len(found) != len(axes) or not all(map(_may_fit, axes, wanted, found)):
        fail(f"{_wish(name, axes, wanted)}. Received shape: {_listed(shape)}")
    if asserts is not None:
        found = _completed(tensor, found)
        _assert_shape(name, axes, wanted, found, asserts)
    for axis, size in zip(axes, found, strict=True):
        if isinstance(size, int) or axis not in sizes:
            sizes[axis] = size


def _wanted(axis, sizes):
    if axis.isdigit():
        return int(axis)
    return None if axis.endswith("*") else sizes.get(axis.rstrip("?"))


def _shape_of(tensor):
    """The static shape of a tensor, or of a value that can be converted to one."""
    if not hasattr(tensor, "shape"):
        tensor = tf.convert_to_tensor(tensor)
    return tf.TensorShape(tensor.shape)


def _may_fit(axis, wanted, found):
    if not (isinstance(wanted, int) and isinstance(found, int)):
        return True
    return found == wanted or (found == 1 and axis.endswith("?"))


def _completed(tensor, found):
    """Replaces sizes that are not known when tracing by scalar tensors."""
    if None not in found:
        return found
    shape = tf.shape(tensor)
    return [shape[i] if size is None else size for i, size in enumerate(found)]


def _assert_shape(name, axes, wanted, found, asserts):
    """Compares the sizes that could not be compared when tracing."""
    fits = [
        tf.equal(one, other) | (axis.endswith("?") & tf.equal(other, 1))
        for axis, one, other in zip(axes, wanted, found, strict=True)
        if one is not None and (tf.is_tensor(one) or tf.is_tensor(other))
    ]
    if fits:
        message = f"{_wish(name, axes, wanted)}. Received shape:"
        check(tf.reduce_all(fits), message, tf.stack(found), asserts=asserts)


def _wish(name, axes, sizes):
    """Such as "`token_ids` must have shape [batch, long_len], here [2, long_len]"."""
    axes = [axis.replace("?", " or 1").removesuffix("*") for axis in axes]
    wish = f"`{name}` must have shape [{', '.join(axes)}]"
    if not any(isinstance(size, int) for size in sizes):
        return wish
    pairs = zip(axes, sizes, strict=True)
    numbers = [str(size) if isinstance(size, int) else axis for axis, size in pairs]
    return f"{wish}, here [{', '.join(numbers)}]"


def _listed(shape):
    return str(shape.as_list()).replace("None", "?")
