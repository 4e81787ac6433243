"""Lets outside code, such as `etcmodel.inspection`, see and change calls while they happen.

It is like `flax.linen.intercept_methods`, for layers (`layers.base.Layer`) and functions that are
`interceptable`. While nothing intercepts, a call costs one lookup of a thread-local attribute.
"""

import contextlib
import functools
import threading

import tensorflow as tf

__all__ = ["called", "intercept", "interceptable", "is_intercepting"]

_state = threading.local()


@contextlib.contextmanager
def intercept(*targets, by):
    """A context in which this thread's calls of the targets go through a function.

    Only calls by Python are seen: operations of a graph that was traced before do not change.

    Args:
        *targets: layers, or `interceptable` functions.
        by: function of the target, a function that makes the call, and the call's arguments. Its
            result is the result of the call. Calls of the target inside it are not intercepted.
    """
    before = getattr(_state, "by_target", None)
    _state.by_target = {**(before or {}), **{id(target): by for target in targets}}
    try:
        yield
    finally:
        _state.by_target = before


def is_intercepting():
    """Whether any calls in this thread are to be seen."""
    return bool(getattr(_state, "by_target", None))


def called(target, call, args, kwargs):
    """`call(*args, **kwargs)`, a call of `target`, through its interceptor if there is one."""
    by_target = getattr(_state, "by_target", None)
    if not by_target or id(target) not in by_target:
        return call(*args, **kwargs)
    _state.by_target = {key: by for key, by in by_target.items() if key != id(target)}
    try:
        return by_target[id(target)](target, call, *args, **kwargs)
    finally:
        _state.by_target = by_target


def interceptable(function):
    """Decorator for a function whose calls `intercept` can see."""

    @tf.autograph.experimental.do_not_convert
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return called(wrapped, function, args, kwargs)

    return wrapped
