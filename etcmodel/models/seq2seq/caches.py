"""What a decoder keeps from one token to the next: the encoder's and its own keys and values."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.layers.attention.decoder import KeyCache

__all__ = ["Cache", "Memory"]


class Memory(NamedTuple):
    """The encoder's output, prepared for attention to it; the same at each token.

    Attributes:
        keys: list by layer of `PreparedKeySet`.
        mask: 0/1 int [batch, encoder_length], or None.
    """

    keys: list
    mask: tf.Tensor | None


class Cache(NamedTuple):
    """Keys and values of the previous tokens: a loop state.

    Attributes:
        keys: tuple by layer of float [num_heads, num_rows, max_length, size_per_head].
        values: likewise.
        position: int32 scalar. Number of tokens so far.
    """

    keys: tuple
    values: tuple
    position: tf.Tensor

    @classmethod
    def empty(cls, num_layers, shape, dtype):
        """Creates a cache without tokens."""
        zeros = tuple(tf.zeros(shape, dtype) for _ in range(num_layers))
        return cls(zeros, zeros, tf.constant(0))

    def of_layer(self, index):
        """Returns a layer's `KeyCache`."""
        return KeyCache(self.keys[index], self.values[index], self.position)

    def after(self, of_layers):
        """Returns the cache after one more token, from the layers' `KeyCache`s."""
        keys, values = zip(*((x.keys, x.values) for x in of_layers), strict=True)
        return Cache(keys, values, self.position + 1)

    def of_rows(self, rows):
        """Selects rows, which may repeat: int32 [new num_rows]."""
        keys, values = (
            tuple(tf.gather(x, rows, axis=1) for x in of_layers)
            for of_layers in (self.keys, self.values)
        )
        return Cache(keys, values, self.position)
