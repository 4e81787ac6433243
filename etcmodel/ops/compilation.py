"""Compiles the element-wise parts of the ops with XLA where that pays.

On a CPU TensorFlow's own kernels multiply matrices and reduce rows fastest, but run each
element-wise operation as a pass of its own over memory; XLA makes one pass of all of them. So it is
functions of large tensors between two matrix products that are compiled, where shapes are known
when tracing (XLA would compile again for each new length).
"""

import contextlib
import functools
import math
import threading

import tensorflow as tf

__all__ = ["compiled_elementwise", "fusion_scope"]

# Below this number of elements the passes cost less than a call of the compiled function.
_LEAST_ELEMENTS = 1 << 17

_state = threading.local()


@contextlib.contextmanager
def fusion_scope(mode):
    """Chooses what `compiled_elementwise` does inside.

    Args:
        mode: 'auto' (compile large functions of known shapes in graphs), 'always' (compile
            whatever the shapes) or 'never' (as for a SavedModel, whose server may lack XLA).
    Raises:
        ValueError: if the mode is unknown.
    """
    if mode not in ("auto", "always", "never"):
        raise ValueError(f"`mode` must be 'auto', 'always' or 'never'. Received: {mode!r}")
    previous = _mode()
    _state.mode = mode
    try:
        yield
    finally:
        _state.mode = previous


def _mode():
    return getattr(_state, "mode", "auto")


def compiled_elementwise(function):
    """Decorates a function of tensors; it is compiled where that pays.

    The function takes tensors (or None) by position and everything else by keyword, hashable, and
    returns a tensor or a tuple of them. It must not be differentiated through: it is for the inside
    of custom gradients.
    """
    compiled = {}

    @functools.wraps(function)
    def call(*tensors, **static):
        if not _pays(tensors):
            return function(*tensors, **static)
        key = tuple(sorted(static.items()))
        if key not in compiled:
            compiled[key] = tf.function(
                functools.partial(function, **static),
                jit_compile=True,
                autograph=False,
                reduce_retracing=False,
            )
        return compiled[key](*tensors)

    return call


def _pays(tensors):
    mode = _mode()
    if mode != "auto":
        return mode == "always"
    if tf.executing_eagerly():
        return False
    sizes = [tensor.shape.num_elements() for tensor in tensors if tensor is not None]
    return None not in sizes and math.fsum(sizes) >= _LEAST_ELEMENTS
