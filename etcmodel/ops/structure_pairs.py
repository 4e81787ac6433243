"""Masks and labels of a `GlobalLocalStructure` over all pairs of tokens, as dense tensors.

Labels are int32; they are None for a structure without labels. Those between long tokens are by
offset: [batch, long_len, 2 * local_radius + 1].
"""

import functools
from typing import NamedTuple

import tensorflow as tf

from etcmodel.ops import relations, relative_positions

__all__ = [
    "PairTensors",
    "g2g_labels",
    "hard_g2g",
    "hard_l2g",
    "hard_l2l",
    "l2g_labels",
    "l2l_labels",
    "link_pairs",
    "pair_tensors",
]


class PairTensors(NamedTuple):
    """The tensors over pairs that a model's layers need. Each has a function of the same name.

    Attributes:
        l2l_labels: None if labels depend only on the offset.
        hard_l2l: see the function.
        g2g_labels: likewise.
        hard_g2g: likewise.
        link_pairs: likewise.
    """

    l2l_labels: tf.Tensor | None
    hard_l2l: tf.Tensor | None
    g2g_labels: tf.Tensor | None
    hard_g2g: tf.Tensor | None
    link_pairs: tuple


def pair_tensors(structure, local_radius):
    """Computes the `PairTensors` of a structure."""
    return PairTensors(
        l2l_labels=l2l_labels(structure, local_radius) if structure.has_l2l_ids else None,
        hard_l2l=hard_l2l(structure, local_radius),
        g2g_labels=g2g_labels(structure),
        hard_g2g=hard_g2g(structure),
        link_pairs=link_pairs(structure),
    )


def link_pairs(structure):
    """Computes the pairs of each relation between long and global tokens.

    Returns:
        tuple of bool [batch, long_len, global_len]; None for a relation whose ids are one global
        token for each long token, which needs no such tensor.
    """
    sizes = structure.sizes()
    return tuple(
        None if isinstance(relation, relations.LinkIds) else relation.holds(sizes)
        for relation in structure.relations_between("l2g")
    )


def l2l_labels(structure, local_radius):
    """Labels between long tokens: int32 [batch, long_len, 2 * local_radius + 1]."""
    if not structure.has_labels:
        return None
    sizes = structure.sizes(local_radius)
    generator = relative_positions.RelativePositionGenerator(structure.max_distance)
    labels = generator.make_local_relative_att_ids(sizes.long_len, local_radius)
    labels = tf.tile(labels, [sizes.batch, 1, 1])  # The batch may be empty.
    return _overwritten(labels, structure.relations_between("l2l"), sizes)


def g2g_labels(structure):
    """Labels between global tokens: int32 [batch, global_len, global_len]."""
    if not structure.has_labels:
        return None
    sizes = structure.sizes()
    if isinstance(sizes.global_len, int) and sizes.global_len == 0:
        return tf.zeros([sizes.batch, 0, 0], tf.int32)
    generator = relative_positions.RelativePositionGenerator(structure.max_distance)
    labels = tf.tile(generator.make_relative_att_ids(sizes.global_len), [sizes.batch, 1, 1])
    if structure.global_segment_ids is not None:
        labels = relative_positions.overwrite_relative_att_ids_outside_segments(
            labels, structure.global_segment_ids, overwrite_value=structure.labels.other_segment
        )
    return _overwritten(labels, structure.relations_between("g2g"), sizes)


def l2g_labels(structure):
    """Labels between long and global tokens: int32 [batch, long_len, global_len]."""
    if not structure.has_labels:
        return None
    sizes = structure.sizes()
    labels = tf.fill([sizes.batch, sizes.long_len, sizes.global_len], structure.labels.cross)
    return _overwritten(labels, structure.relations_between("l2g"), sizes)


def hard_l2l(structure, local_radius):
    """Hard mask: bool [batch, long_len, 2 * local_radius + 1], or None without hard edges."""
    hard = _hard(structure, "l2l", structure.sizes(local_radius))
    if hard is None:
        return None
    return hard | tf.equal(tf.range(-local_radius, local_radius + 1), 0)


def hard_g2g(structure):
    """Hard mask: bool [batch, global_len, global_len], or None without hard edges."""
    sizes = structure.sizes()
    hard = _hard(structure, "g2g", sizes)
    if hard is None:
        return None
    position = tf.range(sizes.global_len)
    return hard | tf.equal(position[:, tf.newaxis], position)


def hard_l2g(structure):
    """Hard mask: bool [batch, long_len, global_len], or None without hard links."""
    return _hard(structure, "l2g", structure.sizes())


def _overwritten(labels, its_relations, sizes):
    """Labels after all relations, of which the last one applies."""
    for relation in its_relations:
        if relation.has_labels:
            ids = relation.labels(sizes)
            labels = tf.where(ids >= 0, ids, labels)
    return labels


def _hard(structure, piece, sizes):
    """The pairs for which any hard relation holds; None without hard relations."""
    hard = [x.holds(sizes) for x in structure.relations_between(piece) if x.is_hard]
    return functools.reduce(tf.logical_or, hard) if hard else None
