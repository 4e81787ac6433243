"""Labels of offsets counted from a number of the query, not from its position."""

import dataclasses

import tensorflow as tf

from etcmodel.ops import argument_checks
from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.labels.tables import LabelTables, TableLabels
from etcmodel.ops.shapes import get_shape_list

__all__ = ["RowOffsetLabels"]


@dataclasses.dataclass(frozen=True)
class RowOffsetLabels(TableLabels):
    """Pairs labeled by key position minus a number of the query, such as that of its block.

    For biases, and for fewer keys than queries. All queries with the same number share a row of
    biases, which each query copies: no labels by pair are computed.

    Attributes:
        tables: `LabelTables` of biases.
        function: `offsets.OffsetFunction`.
        row_numbers: int32 [batch, num_rows], from -1 to the number of keys - 1.

    >>> from etcmodel.ops import blockwise, key_sets, labels, offsets
    >>> tables = labels.LabelTables(biases=tf.constant([[9.0], [0.0], [0.0]]))
    >>> numbers = tf.constant([[0, 1, 1]])
    >>> of_pairs = labels.RowOffsetLabels(tables, offsets.ClippedOffsets(1), numbers)
    >>> keys = key_sets.KeySet(tf.zeros([1, 2, 1, 4]), tf.eye(2)[None, :, None], labels=of_pairs)
    >>> blockwise.attend(tf.zeros([1, 3, 1, 4]), [keys])[0, :, 0].numpy().round(2)
    array([[0.99, 0.01],
           [0.01, 0.99],
           [0.01, 0.99]], dtype=float32)
    """

    tables: LabelTables
    function: object
    row_numbers: tf.Tensor

    def prepare(self, view):
        if self.tables.embeddings is not None:
            argument_checks.fail("`RowOffsetLabels` have biases, no label embeddings.")
        return dataclasses.replace(self, row_numbers=view.tiles.arrange(self.row_numbers))

    def add(self, logits, label_logits, bias, pairs):
        by_label = label_logits[0].total()[:, 0, 0, 0]  # [heads, labels]
        by_number = tf.gather(by_label, self._labels(pairs), axis=1)
        by_pair = tf.gather(by_number, self._numbers(pairs), axis=1)
        return _add_by_pair(logits, by_pair, bias)

    def collect(self, gradient, pairs):
        num_heads, batch, tiles, rows, num_keys = get_shape_list(gradient)
        by_row = tf.transpose(tf.cast(gradient, tf.float32), [1, 2, 3, 4, 0])
        by_row = tf.reshape(by_row, [batch * tiles * rows, num_keys, num_heads])
        numbers = tf.broadcast_to(self._numbers(pairs), [batch, tiles, rows])
        by_number = tf.math.unsorted_segment_sum(by_row, tf.reshape(numbers, [-1]), num_keys + 1)
        num_labels = get_shape_list(self.tables.biases)[1]
        by_label = tf.math.unsorted_segment_sum(by_number, self._labels(pairs), num_labels)
        return [tf.transpose(by_label)[:, tf.newaxis, tf.newaxis, tf.newaxis]]

    def _labels(self, pairs):
        """By number, from -1 on, and key: int32 [num_keys + 1, num_keys]."""
        num_keys = pairs.view.num_keys
        return self.function.labels(tf.range(num_keys) - tf.range(-1, num_keys)[:, tf.newaxis])

    def _numbers(self, pairs):
        """Of the queries, from 0 on: int32 [batch, tiles, rows]."""
        return pairs.queries(self.row_numbers) + 1


@compiled_elementwise
def _add_by_pair(logits, by_pair, bias):
    return tf.cast(logits, tf.float32) + by_pair + bias
