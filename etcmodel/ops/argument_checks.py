"""Checks of arguments: one readable line in place of the error of some operation inside."""

import tensorflow as tf

__all__ = ["check", "check_shapes", "fail"]


def fail(message):
    """Raises ValueError with this line alone.

    The attributes tell Keras not to add all arguments of the call, and AutoGraph not to add how the
    call came about.
    """
    error = ValueError(message)
    error._keras_call_info_injected = error.ag_pass_through = True
    raise error


def check(condition, message, *found, asserts):
    """Checks at once what is known, and the rest when the graph runs.

    Args:
        condition: bool, or bool scalar tensor.
        message: str. Names the argument and what is wanted.
        *found: str, int or int tensor: what the message is followed by.
        asserts: list. In a graph the operation that checks is added to it. It raises
            `tf.errors.InvalidArgumentError`; code compiled by XLA leaves it out.
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
    """Checks that tensors have the axes they should have, and each axis one size everywhere.

    The size of an axis is what `sizes` or else the first tensor with that axis says. Sizes that are
    known when tracing are always compared, at no cost; the others only with `asserts`.

    Args:
        tensors: dict of argument name to tensor, in the order of the checks; None is skipped.
        axes: dict of argument name to the names of its axes, such as "batch long_len"; "batch?" is
            an axis of the size of `batch` or 1.
        sizes: dict of axis name to int, or None.
        asserts: see `check`; None if what only a running graph knows shall not be checked.
    Returns:
        dict of axis name to size: int, or with `asserts` a scalar tensor; None if unknown.
    Raises:
        ValueError: naming the argument, the shape wanted and the shape found.
    """
    sizes = dict(sizes or {})
    for name, tensor in tensors.items():
        if tensor is not None:
            _check_shape(name, tensor, axes[name].split(), sizes, asserts)
    return sizes


def _check_shape(name, tensor, axes, sizes, asserts):
    wanted = [sizes.get(axis.rstrip("?")) for axis in axes]
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


def _shape_of(tensor):
    """What is known of the shape of a tensor, or of what can be made one."""
    if not hasattr(tensor, "shape"):
        tensor = tf.convert_to_tensor(tensor)
    return tf.TensorShape(tensor.shape)


def _may_fit(axis, wanted, found):
    if not (isinstance(wanted, int) and isinstance(found, int)):
        return True
    return found == wanted or (found == 1 and axis.endswith("?"))


def _completed(tensor, found):
    """Sizes as scalar tensors where they are not known when tracing."""
    if None not in found:
        return found
    shape = tf.shape(tensor)
    return [shape[i] if size is None else size for i, size in enumerate(found)]


def _assert_shape(name, axes, wanted, found, asserts):
    """Compares the sizes that were not compared when tracing."""
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
    axes = [axis.replace("?", " or 1") for axis in axes]
    wish = f"`{name}` must have shape [{', '.join(axes)}]"
    if not any(isinstance(size, int) for size in sizes):
        return wish
    pairs = zip(axes, sizes, strict=True)
    numbers = [str(size) if isinstance(size, int) else axis for axis, size in pairs]
    return f"{wish}, here [{', '.join(numbers)}]"


def _listed(shape):
    return str(shape.as_list()).replace("None", "?")
