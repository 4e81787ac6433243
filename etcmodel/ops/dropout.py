"""Dropout whose masks are a function of a seed, equal when activations are recomputed.

Inside `seed_scope(seed)` the n-th call of `dropout` always draws the same mask. A training step
opens a scope whose seed is its step number, so that a resumed run equals an uninterrupted one, and
gradient checkpointing opens one around each recomputed part. Outside any scope each call draws a
new mask.
"""

import contextlib
import functools
import threading

import tensorflow as tf

from etcmodel.ops.shapes import get_shape_list

_state = threading.local()


@contextlib.contextmanager
def seed_scope(seed):
    """Context manager in which dropouts are deterministic.

    Args:
        seed: int [2]. Equal seeds give equal masks.
    """
    scopes = _state.__dict__.setdefault("scopes", [])
    scopes.append([seed, 0])
    try:
        yield
    finally:
        scopes.pop()


def new_seed(own=None):
    """Returns a seed that no earlier call in this scope returned: int32 [2].

    Args:
        own: int or None. Callers with different numbers get different seeds.
    """
    scopes = _state.__dict__.get("scopes")
    if not scopes:
        return tf.random.uniform([2], tf.int32.min, tf.int32.max, tf.int32, seed=own)
    scope = scopes[-1]
    scope[1] += 1
    seed = tf.random.experimental.stateless_fold_in(tf.cast(scope[0], tf.int32), scope[1])
    return seed if own is None else tf.random.experimental.stateless_fold_in(seed, own)


def num_seeds():
    """Returns how many seeds `new_seed` has given in this scope; 0 outside of scopes.

    An int or int32 scalar."""
    scopes = _state.__dict__.get("scopes")
    return scopes[-1][1] if scopes else 0


def set_num_seeds(number):
    """Continues as if `new_seed` had given so many in this scope; no effect outside of scopes.

    In a loop, which is traced once, the number must be a tensor to change each time.

    Args:
        number: int or int32 scalar.
    """
    scopes = _state.__dict__.get("scopes")
    if scopes:
        scopes[-1][1] = number


def dropout(x, rate, noise_shape=None, seed=None):
    """Like `stateless_dropout`, with a new seed.

    Args:
        x: float tensor of any shape.
        rate: float, at least 0 and below 1.
        noise_shape: see `stateless_dropout`.
        seed: int or None. See `new_seed`.
    """
    if rate == 0:
        return tf.identity(x)
    return stateless_dropout(x, rate, new_seed(seed), noise_shape)


def stateless_dropout(x, rate, seed, noise_shape=None, name=None):
    """Sets a share `rate` of the elements to 0 and scales the others by 1 / (1 - rate).

    Args:
        x: float tensor of any shape.
        rate: float, at least 0 and below 1, or a scalar tensor.
        seed: int [2]. Equal seeds give equal masks.
        noise_shape: shape of the mask, which is broadcast to `x`: int tensor, or sequence of int or
            None (for the size of `x` on that axis). None for the shape of `x`.
        name: name of the operation.
    Returns:
        Same shape and dtype as `x`.
    Raises:
        ValueError: if `rate` is out of range or not a scalar, `x` is not float, or `noise_shape`
            does not match `x`.

    >>> from etcmodel.layers.stateless_dropout import stateless_dropout
    >>> one, same = (stateless_dropout(tf.ones([8]), 0.5, seed=[1, 2]) for _ in range(2))
    >>> bool(tf.reduce_all(one == same)), sorted(set(one.numpy().tolist()))
    (True, [0.0, 2.0])
    """
    with tf.name_scope(name or "stateless_dropout"):
        x = tf.convert_to_tensor(x)
        if noise_shape is not None and not tf.is_tensor(noise_shape):
            noise_shape = _mask_shape(get_shape_list(x), list(noise_shape))
        return tf.nn.experimental.stateless_dropout(
            x, rate=rate, seed=seed, noise_shape=noise_shape
        )


def _mask_shape(shape, noise_shape):
    """The noise shape with its open sizes filled in; axes are counted from the last one."""
    aligned = shape[len(shape) - len(noise_shape) :]
    fits = len(noise_shape) <= len(shape) and all(
        wanted is None or tf.is_tensor(wanted) or tf.is_tensor(size) or wanted in (1, size)
        for wanted, size in zip(noise_shape, aligned, strict=True)
    )
    if not fits:
        raise ValueError(f"`noise_shape` {noise_shape} cannot be broadcast to inputs of {shape}.")
    return [
        size if wanted is None else wanted
        for wanted, size in zip(noise_shape, aligned, strict=True)
    ]


def random_bits(x, seed):
    """Draws random bits for `keep`: uint16 in the shape of `x`, from the seed (int [2])."""
    shape = get_shape_list(x)
    size = functools.reduce(lambda a, b: a * b, shape)
    # Two values from each 32-bit word, since drawing the words takes most of the time.
    words = tf.random.stateless_uniform([(size + 1) // 2], seed, None, None, tf.int32)
    return tf.reshape(tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size], shape)


def keep(x, bits, rate):
    """Applies dropout to `x` by random bits of its shape; returns `x` itself if `bits` is None.

    The rate is rounded to a multiple of 2**-16.
    """
    if bits is None:
        return x
    threshold = round(rate * 2**16)
    kept = tf.cast(bits, tf.int32) >= threshold
    return tf.where(kept, x * (2**16 / (2**16 - threshold)), tf.zeros([], x.dtype))
