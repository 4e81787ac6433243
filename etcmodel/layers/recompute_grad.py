"""Functions that the backward pass computes again instead of keeping their activations.

`tf.recompute_grad`, in a context that tells what runs inside it whether it runs again, and that
gives every dropout inside it the same masks both times.
"""

import collections
import functools
import threading
from typing import NamedTuple

import tensorflow as tf

from etcmodel.ops import dropout as dropout_ops

__all__ = ["RecomputeContext", "get_recompute_context", "recompute_grad"]

_state = threading.local()


class RecomputeContext(NamedTuple):
    """What a function inside `recompute_grad` may ask; entered by `with`.

    Dropouts inside it draw their masks from the seed, in the order of their calls.

    Attributes:
        is_recomputing: bool. Whether this is the second computation, for the gradient.
        seed: int scalar. The same in both computations.
        children: deque of `RecomputeContext`, of the calls nested in the first computation.
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
    """The innermost `RecomputeContext` that this thread is in, or None."""
    entered = _entered()
    return entered[-1][0] if entered else None


def recompute_grad(f, seed=None):
    """A function that returns what `f` does and computes it again for its gradient.

    Args:
        f: function of tensors to a tensor or a sequence of tensors. It may use variables.
        seed: int scalar or None. Decides the masks of dropouts in `f`; None for others each time.
    Returns:
        function.
    """

    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        outer = get_recompute_context()
        is_again = outer is not None and outer.is_recomputing
        # Inside a recomputed function this is a function of that one's seed.
        own_seed = dropout_ops.new_seed()[0] if seed is None else seed
        context = RecomputeContext(is_again, own_seed, collections.deque())
        if outer is not None and not is_again:
            outer.children.append(context)
        first = [context]

        def run(*args, **kwargs):
            with first.pop() if first else context._replace(is_recomputing=True):
                return f(*args, **kwargs)

        return tf.recompute_grad(run)(*args, **kwargs)

    return wrapped


def _entered():
    return _state.__dict__.setdefault("entered", [])
