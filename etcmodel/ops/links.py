"""Links between queries and keys: as an index for each query or each key, or by pair."""

import dataclasses
from typing import Protocol

import tensorflow as tf

from etcmodel.ops import pair_values

__all__ = [
    "Links",
    "LinksByPair",
    "LinksOfKeys",
    "LinksOfQueries",
    "of_long_keys",
    "of_long_queries",
]

_NO_TOKEN = -1


class Links(Protocol):
    """The interface of links between queries and keys."""

    def prepare(self, view):
        """Returns the same links for a `views.View`: tensors arranged as its rows and keys."""

    def linked(self, pairs):
        """Whether each of a step's `views.Pairs` is linked: bool [batch, tiles, rows, window]."""


@dataclasses.dataclass(frozen=True)
class LinksOfQueries:
    """Each query is linked to one key.

    Attributes:
        ids: int [batch, num_rows]. Positions of keys; any other number links nothing.
    """

    ids: tf.Tensor

    def prepare(self, view):
        return LinksOfQueries(view.tiles.arrange(_as_int32(self.ids), value=_NO_TOKEN))

    def linked(self, pairs):
        return tf.equal(pairs.queries(self.ids)[..., tf.newaxis], pairs.key_positions())


@dataclasses.dataclass(frozen=True)
class LinksOfKeys:
    """Each key is linked to one query.

    Attributes:
        ids: int [batch, num_keys]. Positions of queries; any other number links nothing.
    """

    ids: tf.Tensor

    def prepare(self, view):
        return LinksOfKeys(view.arrange(_as_int32(self.ids), value=_NO_TOKEN))

    def linked(self, pairs):
        return tf.equal(pairs.keys(self.ids)[:, :, tf.newaxis], pairs.query_positions())


@dataclasses.dataclass(frozen=True)
class LinksByPair:
    """Links given for each pair.

    Attributes:
        values: `pair_values.PairValues` of bool or 0/1 int.
    """

    values: pair_values.PairValues

    def prepare(self, view):
        return LinksByPair(self.values.prepare(view))

    def linked(self, pairs):
        return tf.not_equal(tf.cast(self.values.of(pairs), tf.int32), 0)


def of_long_queries(relation, pairs):
    """Links of a relation between long and global tokens, with the long tokens as queries.

    Args:
        relation: `relations.Relation`.
        pairs: bool [batch, long_len, global_len]. Pairs for which the relation holds; None if its
            `ids` have one global token for each long token.
    """
    return LinksOfQueries(relation.ids) if pairs is None else LinksByPair(pair_values.Dense(pairs))


def of_long_keys(relation, pairs):
    """Like `of_long_queries`, with the long tokens as keys."""
    if pairs is None:
        return LinksOfKeys(relation.ids)
    return LinksByPair(pair_values.Dense(tf.transpose(pairs, [0, 2, 1])))


def _as_int32(ids):
    return tf.saturate_cast(ids, tf.int32)  # A plain cast would wrap large ids around.
