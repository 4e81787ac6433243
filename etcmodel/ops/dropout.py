"""Dropout whose masks are a function of a seed, so that recomputed activations see the same ones.

Inside `seed_scope(seed)` the n-th call of `dropout` always draws the same mask. A training step
opens a scope from its step number (a resumed run then repeats the uninterrupted one), and gradient
checkpointing opens one around each recomputed part. Outside any scope masks are fresh each time.
"""

import contextlib
import threading

import tensorflow as tf

__all__ = ["dropout", "new_seed", "seed_scope"]

_state = threading.local()


@contextlib.contextmanager
def seed_scope(seed):
    """Makes the dropouts inside deterministic.

    Args:
        seed: int [2]. Equal seeds give equal masks.
    """
    scopes = _state.__dict__.setdefault("scopes", [])
    scopes.append([seed, 0])
    try:
        yield
    finally:
        scopes.pop()


def new_seed():
    """A seed that no earlier call in this scope returned: int32 [2]."""
    scopes = _state.__dict__.get("scopes")
    if not scopes:
        return tf.random.uniform([2], tf.int32.min, tf.int32.max, tf.int32)
    scope = scopes[-1]
    scope[1] += 1
    return tf.random.experimental.stateless_fold_in(tf.cast(scope[0], tf.int32), scope[1])


def dropout(x, rate):
    """Sets a share `rate` of the elements to 0 and scales the others by 1 / (1 - rate).

    Args:
        x: float tensor of any shape.
        rate: float, at least 0 and below 1.
    """
    if rate == 0:
        return tf.identity(x)
    return tf.nn.experimental.stateless_dropout(x, rate=rate, seed=new_seed())
