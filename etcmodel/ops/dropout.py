"""Dropout whose masks are a function of a seed, so that recomputed activations see the same ones.

Inside `seed_scope(seed)` the n-th call of `dropout` always draws the same mask. A training step
opens a scope from its step number (a resumed run then repeats the uninterrupted one), and gradient
checkpointing opens one around each recomputed part. Outside any scope masks are fresh each time.
"""

import contextlib
import functools
import threading

import tensorflow as tf

from etcmodel import tensor_utils

__all__ = ["dropout", "keep", "new_seed", "random_bits", "seed_scope"]

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


def random_bits(x, seed):
    """Random bits for `keep`: uint16 of the shape of `x`, a function of the seed (int [2])."""
    shape = tensor_utils.get_shape_list(x)
    size = functools.reduce(lambda a, b: a * b, shape)
    # Two of them from each random word: drawing the words is what takes the time.
    words = tf.random.stateless_uniform([(size + 1) // 2], seed, None, None, tf.int32)
    return tf.reshape(tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size], shape)


def keep(x, bits, rate):
    """Dropout of `x` by random bits of its shape; `x` itself without bits (None).

    The rate is rounded to a multiple of 2**-16.
    """
    if bits is None:
        return x
    threshold = round(rate * 2**16)
    kept = tf.cast(bits, tf.int32) >= threshold
    return tf.where(kept, x * (2**16 / (2**16 - threshold)), tf.zeros([], x.dtype))
