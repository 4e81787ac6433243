"""Attention biases given for each pair."""

import dataclasses

import tensorflow as tf

from etcmodel.ops import pair_values
from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.labels.tables import Labels
from etcmodel.ops.shapes import get_shape_list

__all__ = ["PairBiases"]


@dataclasses.dataclass(frozen=True)
class PairBiases(Labels):
    """Biases added to the scaled logits of pairs; they can be trained.

    They have the dtype of the queries.

    Attributes:
        values: `pair_values.Dense` or `ByOffset` of float, with an axis of heads after the batch
            axis: [batch or 1, num_heads or 1, num_rows, num_keys or offsets].

    >>> from etcmodel.ops import blockwise, key_sets, labels, pair_values
    >>> biases = labels.PairBiases(pair_values.Dense(tf.constant([[[[9.0, 0.0], [0.0, 9.0]]]])))
    >>> keys = key_sets.KeySet(tf.zeros([1, 2, 1, 4]), tf.eye(2)[None, :, None], labels=biases)
    >>> blockwise.attend(tf.zeros([1, 2, 1, 4]), [keys])[0, :, 0].numpy().round(2)
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    values: pair_values.PairValues

    def prepare(self, view):
        x = tf.transpose(self.values.values, [1, 0, 2, 3])
        outer, (rows, columns) = x.shape[:2], get_shape_list(x)[2:]
        num_heads, batch = get_shape_list(x)[:2]
        flat = tf.reshape(x, [num_heads * batch, rows, columns])
        values = dataclasses.replace(self.values, values=flat)
        return _PreparedBiases(values.prepare(view), outer)

    def tensors(self):
        return [self.values.values]


@dataclasses.dataclass(frozen=True)
class _PreparedBiases(Labels):
    """Biases whose rows are arranged for a view.

    Attributes:
        values: prepared `pair_values.PairValues` of [heads * batch, places, …].
        outer: `tf.TensorShape` [num_heads or 1, batch or 1].
    """

    values: pair_values.PairValues
    outer: tf.TensorShape

    def tensors(self):
        return [self.values.values]

    def for_steps(self, tensors):
        (values,) = tensors
        return dataclasses.replace(self, values=dataclasses.replace(self.values, values=values))

    def logits(self, logits, queries, bias, pairs, scale):
        by_pair = self.values.of(pairs)
        by_pair = tf.reshape(by_pair, [*self._outer(logits), *get_shape_list(by_pair)[1:]])
        return _add_biases(logits, by_pair, bias)

    def gradients(self, gradient, queries, pairs, scale):
        shared = [axis for axis, size in enumerate(self.outer) if size == 1]
        gradient = tf.reduce_sum(tf.cast(gradient, tf.float32), shared, keepdims=True)
        num_heads, batch, *rest = get_shape_list(gradient)
        by_row = self.values.collect(tf.reshape(gradient, [num_heads * batch, *rest]), pairs)
        size, tiles, rows, columns = get_shape_list(by_row)
        return None, [tf.reshape(by_row, [size, tiles * rows, columns])]

    def piece_spec(self, x, step_rows):
        return tf.TensorSpec([x.shape[0], step_rows, x.shape[2]], tf.float32)

    def join(self, gradients):
        (pieces,) = gradients
        steps, size, rows, columns = get_shape_list(pieces)
        return [tf.reshape(tf.transpose(pieces, [1, 0, 2, 3]), [size, steps * rows, columns])]

    def _outer(self, logits):
        """Numbers of heads and of examples with separate biases."""
        sizes = zip(self.outer, get_shape_list(logits), strict=False)
        return [1 if own == 1 else size for own, size in sizes]


@compiled_elementwise
def _add_biases(logits, by_pair, bias):
    return tf.cast(logits, tf.float32) + tf.cast(by_pair, tf.float32) + bias
