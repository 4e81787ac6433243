"""Speeds up TensorFlow's ops: fewer passes over memory, and fewer operations in a graph.

On a CPU, TensorFlow's own kernels are fastest at matrix products and reductions, but run each
element-wise operation as a separate pass over memory, while XLA fuses them into one pass. So only
the element-wise functions of large tensors between two matrix products are compiled, and only if
shapes are known when tracing (XLA would compile again for each new length). Eager calls do the same
for still larger tensors.
"""

import contextlib
import dataclasses
import functools
import math
import threading
import weakref
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.eager import forwardprop_util
from tensorflow.python.ops import gradients_util

# Below this number of elements the separate passes cost less than calling a compiled function.
_LEAST_ELEMENTS = 1 << 17
# An eager call compiles, too, once for each shape. That takes about as long as a model of twelve
# layers saves in one call with so many elements.
_LEAST_EAGER_ELEMENTS = 1 << 20
# Beyond so many shapes eager calls run the operations one by one, or inputs with ever new lengths
# would compile without end. The choice for a shape is kept, so that equal calls have equal results
# to the last bit.
_MOST_EAGER_SHAPES = 64

_state = threading.local()


@contextlib.contextmanager
def fusion_scope(mode):
    """Context manager that decides what `compiled_elementwise` compiles inside it.

    Args:
        mode: 'auto' (compile functions of large tensors of known shapes), 'always' (compile
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


def is_compiled_whole():
    """Returns whether XLA compiles the whole function being traced."""
    return tf.__internal__.get_enclosing_xla_context() is not None


def compiled_elementwise(function):
    """Decorator that compiles a function of tensors where that is faster.

    The function takes tensors (or None) by position and everything else, hashable, by keyword, and
    returns a tensor or a tuple of tensors. It must not be differentiated through: it is for use
    inside custom gradients.
    """
    compiled, eager_shapes = {}, set()

    @functools.wraps(function)
    def call(*tensors, **static):
        key = tuple(sorted(static.items()))
        if not _pays(tensors, key, eager_shapes):
            return function(*tensors, **static)
        if key not in compiled:
            compiled[key] = tf.function(
                functools.partial(function, **static),
                jit_compile=True,
                autograph=False,
                reduce_retracing=False,
            )
        return compiled[key](*tensors)

    return call


def _pays(tensors, key, eager_shapes):
    """Whether to compile a function of these tensors; `eager_shapes` are those already compiled.

    Adds the shapes of an eager call to the set if compiling pays.
    """
    mode = _mode()
    if mode != "auto":
        return mode == "always"
    tensors = [tensor for tensor in tensors if tf.is_tensor(tensor)]
    sizes = [tensor.shape.num_elements() for tensor in tensors]
    if None in sizes:
        return False
    if not tf.executing_eagerly():
        return math.fsum(sizes) >= _LEAST_ELEMENTS
    if math.fsum(sizes) < _LEAST_EAGER_ELEMENTS or not _may_trace_eagerly():
        return False
    shapes = (key, *((tensor.shape, tensor.dtype) for tensor in tensors))
    if len(eager_shapes) < _MOST_EAGER_SHAPES:
        eager_shapes.add(shapes)
    return shapes in eager_shapes


def _may_trace_eagerly():
    """Whether eager calls may run graph functions."""
    return not (tf.config.functions_run_eagerly() or tf.distribute.has_strategy())


def traced_once(function=None, *, is_large=None):
    """Decorator for a pure function whose operations should be only once in a graph.

    In a graph, the function becomes a graph function, which is traced at the first call and called
    by one operation each time; so do its gradients. Layers that differ only in their tensors are
    then traced, optimized and initialized once. A call with different non-tensor values, or with
    tensors of different shapes, is traced separately. Calls in code that XLA compiles as a whole do
    not change: there this was measured to make compilation slower. Eager calls become calls of
    graph functions, too, if `is_large` of the arguments holds, except under a distribution
    strategy, if functions run eagerly, if more than first gradients may be taken, and with objects
    that are equal only to themselves: they may differ at the next call, and would be kept. The
    traces of eager calls are kept until `cache_clear` of the decorated function is called.

    The function takes, by position, tensors, variables and hashable values, also in tuples, lists,
    named tuples and dataclasses; with values that are not hashable it is called directly. It
    returns tensors.
    """
    if function is None:
        return functools.partial(traced_once, is_large=is_large)
    traced = weakref.WeakKeyDictionary()  # By graph, then by all values that are not tensors.
    traced_eagerly = {}

    @functools.wraps(function)
    def call(*args):
        is_eager = tf.executing_eagerly()
        if is_eager and not (is_large and _may_trace_eagerly() and is_large(*args)):
            return function(*args)
        if is_compiled_whole():
            return function(*args)
        tensors = []
        form = _form(args, tensors)
        if is_eager and not _is_of_values(form):
            return function(*args)
        tensors = [tf.convert_to_tensor(x) for x in tensors]
        if is_eager and not _has_first_gradients_alone(tensors):
            return function(*args)
        specs = tuple(tf.TensorSpec(x.shape, x.dtype) for x in tensors)
        key = (form, specs, _mode(), tf.distribute.get_replica_context())
        functions = traced_eagerly
        if not is_eager:
            functions = traced.setdefault(tf.compat.v1.get_default_graph(), {})
        try:
            concrete = functions.get(key)
        except TypeError:  # Not hashable.
            return function(*args)
        if concrete is None and is_eager and len(functions) >= _MOST_EAGER_SHAPES:
            return function(*args)
        if concrete is None:
            concrete = functions[key] = _trace(function, form, specs)
        return concrete(*tensors)

    call.cache_clear = traced_eagerly.clear  # Like that of `functools.cache`.
    return call


def _has_first_gradients_alone(tensors):
    """Whether no persistent or nested tape, nor forward accumulator, watches eager tensors.

    For these TensorFlow creates graph functions that also keep what the gradients of gradients
    need: all logits of an attention at once.
    """
    orders = gradients_util.PossibleTapeGradientTypes(tensors)
    if orders == gradients_util.POSSIBLE_GRADIENT_TYPES_HIGHER_ORDER:
        return False
    return not forwardprop_util.pack_tangents(tensors).tangents


def _trace(function, form, specs):
    return tf.function(
        lambda *tensors: function(*_filled(form, tensors)),
        autograph=False,
        # Inlining would copy its operations for each call.
        experimental_attributes={"_noinline": True},
    ).get_concrete_function(*specs)


class _Place(NamedTuple):
    """The place of a tensor in a form."""

    number: int


class _Value(NamedTuple):
    """A value in a form, with its type, since 1, 1.0 and True are equal."""

    kind: type
    value: object


class _Whole(NamedTuple):
    """A sequence or dataclass in a form."""

    kind: type
    parts: tuple


def _form(value, tensors):
    """`value` with its tensors replaced by places; appends new tensors to `tensors`."""
    if tf.is_tensor(value):
        for number, tensor in enumerate(tensors):
            if tensor is value:
                return _Place(number)
        tensors.append(value)
        return _Place(len(tensors) - 1)
    if isinstance(value, (tuple, list)):
        return _Whole(type(value), tuple(_form(x, tensors) for x in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, name) for name in _init_fields(type(value))]
        return _Whole(type(value), tuple(_form(x, tensors) for x in parts))
    return _Value(type(value), value)


def _is_of_values(form):
    """Whether nothing in a form is compared by identity: such an object may change unnoticed."""
    if isinstance(form, _Whole):
        return all(_is_of_values(part) for part in form.parts)
    if isinstance(form, _Place) or form.value is None:
        return True
    return form.kind.__hash__ is not object.__hash__


def _filled(form, tensors):
    """The inverse of `_form`, possibly with other tensors."""
    if isinstance(form, _Place):
        return tensors[form.number]
    if isinstance(form, _Value):
        return form.value
    kind, parts = form.kind, [_filled(part, tensors) for part in form.parts]
    if kind in (tuple, list):
        return kind(parts)
    if issubclass(kind, tuple):  # A named tuple.
        return kind(*parts)
    return kind(**dict(zip(_init_fields(kind), parts, strict=True)))


def _init_fields(kind):
    return [field.name for field in dataclasses.fields(kind) if field.init]
