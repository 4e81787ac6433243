"""Labels of linked pairs."""

import dataclasses

import tensorflow as tf

from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.labels.tables import LabelTables, TableLabels

__all__ = ["LinkLabels"]


@dataclasses.dataclass(frozen=True)
class LinkLabels(TableLabels):
    """Labels pairs by the relation that links them; of several relations the last one applies.

    Attributes:
        tables: `LabelTables`.
        unlinked: int. The label of pairs that are not linked.
        relations: tuple of (tuple of `structure.Links`, int): links, and the label of the pairs
            that any of them links.

    >>> from etcmodel.ops import blockwise, key_sets, labels, structure
    >>> tables = labels.LabelTables(biases=[[0.0], [9.0]])
    >>> linked = structure.LinksOfQueries([[1, 1]])
    >>> of_pairs = labels.LinkLabels(tables, unlinked=0, relations=(((linked,), 1),))
    >>> keys = key_sets.KeySet(tf.zeros([1, 2, 1, 4]), tf.eye(2)[None, :, None], labels=of_pairs)
    >>> blockwise.attend(tf.zeros([1, 2, 1, 4]), [keys])[0, :, 0].numpy().round(2)
    array([[0.01, 0.99],
           [0.01, 0.99]], dtype=float32)
    """

    tables: LabelTables
    unlinked: int
    relations: tuple

    def prepare(self, view):
        labels = [self.unlinked, *(label for _, label in self.relations)]
        tables = self.tables.rows(lambda table: tf.gather(table, labels))
        relations = tuple(
            (tuple(x.prepare(view) for x in links), label) for links, label in self.relations
        )
        return LinkLabels(tables, self.unlinked, relations)

    def add(self, logits, label_logits, bias, pairs):
        return _add_linked(logits, label_logits[0].total(), bias, *self._linked(pairs))

    def collect(self, gradient, pairs):
        return [tf.stack(_collect_linked(gradient, *self._linked(pairs)), axis=-1)]

    def _linked(self, pairs):
        """The pairs that each relation links: list of bool [batch, tiles, rows, window]."""
        linked = []
        for links, _ in self.relations:
            linked.append(links[0].linked(pairs))
            for more in links[1:]:
                linked[-1] |= more.linked(pairs)
        return linked


@compiled_elementwise
def _add_linked(logits, by_label, bias, *linked):
    by_pair = by_label[..., :1]
    for index, is_linked in enumerate(linked, start=1):
        by_pair = tf.where(is_linked, by_label[..., index : index + 1], by_pair)
    return tf.cast(logits, tf.float32) + by_pair + bias


def _collect_linked(gradient, *linked):
    """Sums of the gradient over keys by label, that of unlinked pairs first."""
    total, later, sums = tf.reduce_sum(gradient, axis=-1), None, []
    for is_linked in reversed(linked):
        own = is_linked if later is None else is_linked & ~later
        later = is_linked if later is None else is_linked | later
        sums.insert(0, tf.reduce_sum(_keep(gradient, own), axis=-1))
    return [total - tf.add_n(sums) if sums else total, *sums]


@compiled_elementwise
def _keep(gradient, is_kept):
    return tf.where(is_kept, gradient, tf.zeros([], gradient.dtype))
