"""Gradient checkpointing: the backward pass recomputes activations instead of keeping them.

Like `tf.recompute_grad`, but with a context that says inside the function whether this is the
recomputation, and makes every dropout draw the same mask in both computations; and its gradients
are freed with their graph (`ops.gradients`).
"""

import collections
import functools
import threading
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.eager import record

from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops.gradients import custom_gradient

__all__ = ["RecomputeContext", "get_recompute_context", "recompute_grad"]

_state = threading.local()


class RecomputeContext(NamedTuple):
    """The context of a function inside `recompute_grad`; a context manager.

    Dropouts inside it draw their masks from the seed, in the order of their calls.

    Attributes:
        is_recomputing: bool. Whether this is the recomputation, for the gradient.
        seed: int scalar. The same in both computations.
        children: deque of `RecomputeContext`, of the nested calls in the first computation.

    >>> from etcmodel.layers import recompute_grad
    >>> context = recompute_grad.RecomputeContext(is_recomputing=False, seed=None, children=[])
    >>> context.is_recomputing, context.seed
    (False, None)
    """

    is_recomputing: bool
    seed: tf.Tensor
    children: collections.deque

    def __enter__(self):
        scope = dropout_ops.seed_scope(tf.stack([tf.cast(self.seed, tf.int32), 0]))
        scope.__enter__()
        _entered().append((self, scope))
        return self

    def __exit__(self, *exception):
        _, scope = _entered().pop()
        scope.__exit__(*exception)


def get_recompute_context():
    """Returns this thread's innermost `RecomputeContext`, or None.

    >>> from etcmodel.layers import recompute_grad
    >>> recompute_grad.get_recompute_context() is None
    True
    """
    entered = _entered()
    return entered[-1][0] if entered else None


def recompute_grad(f, seed=None):
    """Wraps a function so that its gradient recomputes its activations.

    Args:
        f: function of tensors to a tensor or a sequence of tensors. It may use variables.
        seed: int scalar or None. Seed of the dropouts in `f`; None for a new one in each call.
    Returns:
        function.

    >>> from etcmodel.layers import recompute_grad
    >>> x, function = tf.Variable([3.0]), recompute_grad.recompute_grad(tf.square)
    >>> with tf.GradientTape() as tape:
    ...     y = function(x)
    >>> tape.gradient(y, x).numpy()
    array([6.], dtype=float32)
    """

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        outer = get_recompute_context()
        is_again = outer is not None and outer.is_recomputing
        # Inside another recomputed function the seed is derived from that function's seed, so it is
        # the same in both computations.
        own_seed = dropout_ops.new_seed()[0] if seed is None else seed
        context = RecomputeContext(is_again, own_seed, collections.deque())
        if outer is not None and not is_again:
            outer.children.append(context)
        first = [context]

        def run(*args):
            with first.pop() if first else context._replace(is_recomputing=True):
                return f(*args, **kwargs)

        return _recomputed(run, *args)

    return wrapped


def _recomputed(run, *args):
    """Returns `run(*args)`; its gradient runs it again."""

    @custom_gradient
    def compute(*args):
        def grad(*gradients, variables=()):
            with tf.GradientTape() as tape:
                again = _after(gradients[0], args)
                tape.watch([again, variables])
                outputs = run(*again)
            found = tape.gradient(
                outputs,
                [*again, *variables],
                output_gradients=gradients,
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            return found[: len(again)], found[len(again) :]

        with record.stop_recording():  # Else a tape would keep the activations.
            return run(*args), grad

    return compute(*args)


def _after(gradient, tensors):
    """In a graph, delays the tensors until the gradient exists: earlier they only use memory."""
    if tf.executing_eagerly():
        return [tf.identity(x) for x in tensors]
    # XLA drops control dependencies. The maximum of an empty tensor is no problem.
    first = tf.reduce_max(tf.reshape(gradient, [-1])[:1]) == 0
    zero = tf.where(first == first, 0.0, float("nan"))
    return [x + tf.cast(zero, x.dtype) for x in tensors]


def _entered():
    return _state.__dict__.setdefault("entered", [])
