"""Labels given for each pair."""

import dataclasses

import tensorflow as tf

from etcmodel.ops import pair_values
from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.labels.tables import LabelTables, TableLabels
from etcmodel.ops.shapes import get_shape_list

__all__ = ["IdLabels", "OneHotIdLabels"]


@dataclasses.dataclass(frozen=True)
class IdLabels(TableLabels):
    """Labels given as an id for each pair, as in the release's dense side inputs.

    Attributes:
        tables: `LabelTables`.
        ids: `pair_values.PairValues` of int32.

    >>> from etcmodel.ops import blockwise, key_sets, labels, pair_values
    >>> ids = pair_values.Dense(tf.constant([[[1, 0], [1, 0]]]))
    >>> of_pairs = labels.IdLabels(labels.LabelTables(biases=tf.constant([[0.0], [9.0]])), ids)
    >>> keys = key_sets.KeySet(tf.zeros([1, 2, 1, 4]), tf.eye(2)[None, :, None], labels=of_pairs)
    >>> blockwise.attend(tf.zeros([1, 2, 1, 4]), [keys])[0, :, 0].numpy().round(2)
    array([[0.99, 0.01],
           [0.99, 0.01]], dtype=float32)
    """

    tables: LabelTables
    ids: pair_values.PairValues

    def prepare(self, view):
        return dataclasses.replace(self, ids=self.ids.prepare(view))

    def add(self, logits, label_logits, bias, pairs):
        by_pair = self._by_pair(label_logits[0].total(), self.ids.of(pairs))
        return _add_by_pair(logits, by_pair, bias)

    def collect(self, gradient, pairs):
        num_labels = get_shape_list(self.tables.tensors()[0])[1]
        one_hot = tf.one_hot(self.ids.of(pairs), num_labels, dtype=gradient.dtype)
        return [_einsum("hbnmk,bnmkr->hbnmr", gradient, one_hot)]

    def _by_pair(self, by_label, ids):
        by_query = tf.transpose(by_label, [1, 2, 3, 4, 0])  # [batch, tiles, rows, labels, heads]
        if by_query.shape[:3] == [1, 1, 1]:
            pairs = tf.gather(by_query[0, 0, 0], ids)
        else:
            outer = get_shape_list(by_query)[:3]
            ids = tf.broadcast_to(ids, [*outer, get_shape_list(ids)[-1]])
            pairs = tf.gather(by_query, ids, batch_dims=3)
        return tf.transpose(pairs, [4, 0, 1, 2, 3])


@compiled_elementwise
def _add_by_pair(logits, by_pair, bias):
    return tf.cast(logits, tf.float32) + by_pair + bias


@dataclasses.dataclass(frozen=True)
class OneHotIdLabels(IdLabels):
    """Like `IdLabels`, with matrix products instead of gathers, for TPUs.

    >>> from etcmodel.ops import blockwise, key_sets, labels, pair_values
    >>> ids = pair_values.Dense(tf.constant([[[1, 0], [0, 1]]]))
    >>> of_pairs = labels.OneHotIdLabels(labels.LabelTables(biases=[[0.0], [9.0]]), ids)
    >>> keys = key_sets.KeySet(tf.zeros([1, 2, 1, 4]), tf.eye(2)[None, :, None], labels=of_pairs)
    >>> blockwise.attend(tf.zeros([1, 2, 1, 4]), [keys])[0, :, 0].numpy().round(2)
    array([[0.99, 0.01],
           [0.01, 0.99]], dtype=float32)
    """

    def _by_pair(self, by_label, ids):
        one_hot = tf.one_hot(ids, get_shape_list(by_label)[-1], dtype=by_label.dtype)
        if by_label.shape[1:4] == [1, 1, 1]:
            return tf.einsum("hr,bnmkr->hbnmk", by_label[:, 0, 0, 0], one_hot)
        return _einsum("hbnmr,bnmkr->hbnmk", by_label, one_hot)


def _einsum(equation, x, by_pair):
    """`tf.einsum` whose second operand may have a batch size of 1, for all examples."""
    if by_pair.shape[0] == 1 and x.shape[1] != 1:
        by_pair, equation = by_pair[0], equation.replace(",b", ",")
    return tf.einsum(equation, x, by_pair)
