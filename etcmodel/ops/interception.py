"""Lets other code, such as `etcmodel.inspection`, observe and change calls as they happen.

It is like `flax.linen.intercept_methods`, for layers (`layers.base.Layer`) and functions that are
`interceptable`. Without interceptors, a call costs one lookup of a thread-local attribute.
"""

import contextlib
import functools
import threading

import tensorflow as tf

_state = threading.local()


@contextlib.contextmanager
def intercept(*targets, by):
    """Context manager in which this thread's calls of the targets go through a function.

    Only Python calls are intercepted: operations of a graph traced before do not change.

    Args:
        *targets: layers, or `interceptable` functions.
        by: function of the target, a function that makes the call, and the call's arguments. Its
            result replaces the result of the call. Calls of the target inside it are not
            intercepted.
    """
    before = getattr(_state, "by_target", None)
    _state.by_target = {**(before or {}), **{id(target): by for target in targets}}
    try:
        yield
    finally:
        _state.by_target = before


def is_intercepting():
    """Returns whether any calls in this thread are intercepted."""
    return bool(getattr(_state, "by_target", None))


def called(target, call, args, kwargs):
    """Makes a call of `target`, `call(*args, **kwargs)`, through its interceptor, if any."""
    by_target = getattr(_state, "by_target", None)
    if not by_target or id(target) not in by_target:
        return call(*args, **kwargs)
    _state.by_target = {key: by for key, by in by_target.items() if key != id(target)}
    try:
        return by_target[id(target)](target, call, *args, **kwargs)
    finally:
        _state.by_target = by_target


def interceptable(function):
    """Decorator for a function whose calls `intercept` can observe."""

    @tf.autograph.experimental.do_not_convert
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return called(wrapped, function, args, kwargs)

    return wrapped
