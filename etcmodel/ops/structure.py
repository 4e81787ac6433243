"""The structure of a global-local input, from which masks and labels of pairs follow.

The attention derives masks and relative labels from a `GlobalLocalStructure` for the pairs that it
is computing (paper, sections 3.2 and 3.4), so that no tensor over all pairs ever exists.
`relation_labels` numbers the labels; `relations` has the relations that can be added to a
structure.
"""

import dataclasses
import functools
import itertools
from typing import NamedTuple, Protocol

import tensorflow as tf

from etcmodel.ops import argument_checks, pair_values, relative_positions
from etcmodel.ops import labels as labels_ops
from etcmodel.ops import masks as masks_ops
from etcmodel.ops import relations as relations_ops
from etcmodel.ops.offsets import ClippedOffsets
from etcmodel.ops.relation_labels import RelationLabels
from etcmodel.ops.shapes import get_shape_list

__all__ = [
    "GlobalLocalStructure",
    "KeyRules",
    "Links",
    "LinksOfKeys",
    "LinksOfQueries",
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

# Masks and labels of a `GlobalLocalStructure` over all pairs of tokens, as dense tensors.
#
# Labels are int32; they are None for a structure without labels. Those between long tokens are by
# offset: [batch, long_len, 2 * local_radius + 1].


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
        None if type(relation).holds is relations_ops.LinkIds.holds else relation.marks(sizes)
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
            ids = relation.label_ids(sizes)
            labels = tf.where(ids >= 0, ids, labels)
    return labels


def _hard(structure, piece, sizes):
    """The pairs for which any hard relation holds; None without hard relations."""
    hard = [x.marks(sizes) for x in structure.relations_between(piece) if x.is_hard]
    return functools.reduce(tf.logical_or, hard) if hard else None


# Links, and the structure itself.


_NO_TOKEN = -1


class Links(Protocol):
    """The interface of links between queries and keys."""

    def prepare(self, view):
        """Returns the same links for a `reach.View`: tensors arranged as its rows and keys."""

    def linked(self, pairs):
        """Whether each of a step's `reach.Pairs` is linked: bool [batch, tiles, rows, window]."""


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


_AXES = {
    "long_segment_ids": "batch long_len",
    "long_example_ids": "batch long_len",
    "global_example_ids": "batch global_len",
    "global_segment_ids": "batch global_len",
    "ignore_hard_g2l_mask": "batch? global_len",
    "ignore_hard_l2g_mask": "batch? long_len",
}


class KeyRules(NamedTuple):
    """The masks and labels between queries and one set of keys.

    Attributes:
        masks: tuple of `masks.Mask`.
        labels: function of `attention.RelativeLabels` that returns `labels.Labels`, or None.
        reach: `reach.Reach`, or None for that of the call: a window, or all keys.
    """

    masks: tuple
    labels: object
    reach: object = None


class GlobalLocalStructure(NamedTuple):
    """The structure of a batch. Ids are int; padding has separate segment and example ids.

    Attributes:
        long_segment_ids: [batch, long_len]. Long tokens attend to long tokens of their segment.
        long_example_ids: [batch, long_len]. Within an example, long and global tokens attend to
            each other, and global tokens to one another.
        global_example_ids: [batch, global_len].
        links: tuple of [batch, long_len]. Indices of the global token that each long token is
            linked to, such as that of its sentence; -1 for none. `EtcModel` refuses any other index
            that is not one of a global token (see `input_checks`). The functions here, and code
            compiled by XLA, do not check: there such an index links nothing.
        label_links: tuple of [batch, long_len]. Further links, which hard masks do not follow.
        global_segment_ids: [batch, global_len] or None. Pairs of global tokens of different
            segments have the label `other_segment` instead of that of their relative position.
        ignore_hard_g2l_mask: bool or 0/1 int [batch or 1, global_len] or None. Global tokens that
            are exempt from the hard mask.
        ignore_hard_l2g_mask: bool or 0/1 int [batch or 1, long_len] or None. Long tokens likewise.
        max_distance: int, the model's `relative_pos_max_distance`, to which relative positions are
            clipped. With 0, only `relations` give labels.
        use_hard_g2l_mask: bool. Whether global tokens attend only to the long tokens linked to
            them.
        use_hard_l2g_mask: bool. Whether long tokens attend only to the global tokens they are
            linked to.
        relations: tuple of `relations.Relation`; see `with_relations`.
        pairs: `PairTensors` or None; see `with_pairs`.

    Each pair of tokens has one label, that of the last relation that holds for it, or else the one
    that follows from the other fields. If any pair has a label, all have one; see `RelationLabels`.
    """

    long_segment_ids: tf.Tensor
    long_example_ids: tf.Tensor
    global_example_ids: tf.Tensor
    links: tuple = ()
    label_links: tuple = ()
    global_segment_ids: tf.Tensor | None = None
    ignore_hard_g2l_mask: tf.Tensor | None = None
    ignore_hard_l2g_mask: tf.Tensor | None = None
    max_distance: int = 0
    use_hard_g2l_mask: bool = False
    use_hard_l2g_mask: bool = False
    relations: tuple = ()
    pairs: PairTensors | None = None

    def with_pairs(self, local_radius):
        """Returns the structure with `pairs`, the tensors over pairs that the attention needs.

        They are computed here once for all layers; otherwise each layer computes them.

        Args:
            local_radius: int. The local radius of the layers.
        Raises:
            ValueError: naming the tensor whose shape does not match the others.
        """
        argument_checks.check_shapes(*self.tensors_and_axes())
        return self._replace(pairs=pair_tensors(self, local_radius))

    def with_relations(self, *relations):
        """Returns the structure with further relations, which take precedence over earlier ones.

        Raises:
            ValueError: if two names have the same label, or two labels the same name; if one of
                them is no relation.
        """
        relations = map(_relation, relations)
        structure = self._replace(relations=(*self.relations, *relations), pairs=None)
        structure.check_labels()
        return structure

    @property
    def labels(self):
        """The `RelationLabels` for `max_distance`, without names of free labels."""
        return RelationLabels(self.max_distance)

    @property
    def has_labels(self):
        """Whether pairs have labels."""
        return self.max_distance > 0 or any(x.has_labels for x in self.relations)

    def named_relations(self):
        """dict of field name to relation; `links` and `label_links` are relations, too."""
        named = {}
        for field, is_hard in (("links", True), ("label_links", False)):
            for number, ids in enumerate(getattr(self, field)):
                relation = relations_ops.LinkIds(ids, "linked", self.labels.linked, is_hard)
                named[f"structure.{field}[{number}]"] = relation
        for number, relation in enumerate(self.relations):
            name = "/".join(filter(None, (relation.feature, relation.name)))  # As in batches.
            named[f"structure.relations[{number}] ({name})"] = relation
        return named

    def check_labels(self, vocab_size=None):
        """Checks that names and labels are one to one, and that the label tables are large enough.

        Args:
            vocab_size: int or None. Number of rows of the tables; None if it is not known.
        Raises:
            ValueError: naming the relation and the label.
        """
        self.labels.check_names(self.relations)
        if vocab_size is None or not self.has_labels:
            return
        num_labels = self.labels.num_reserved
        if vocab_size < num_labels:
            argument_checks.fail(
                f"`structure.max_distance` {self.max_distance} needs a `relative_vocab_size` "
                f"of at least {num_labels}. Received: {vocab_size}"
            )
        for field, relation in self.named_relations().items():
            if relation.label is not None and relation.label >= vocab_size:
                argument_checks.fail(
                    f"`{field}` must have a label below `relative_vocab_size`, {vocab_size}. "
                    f"Received: {relation.label}"
                )

    def tensors_and_axes(self):
        """Returns (tensors, axes), two dicts by name, for `argument_checks.check_shapes`."""
        tensors = {f"structure.{name}": getattr(self, name) for name in _AXES}
        axes = {f"structure.{name}": names for name, names in _AXES.items()}
        for field, relation in self.named_relations().items():
            tensors[field], axes[field] = relation.ids, relation.axes
        return tensors, axes

    @classmethod
    def of(cls, structure):
        """Returns a structure, also from a list of its fields; None stays None.

        Keras writes the arguments of a functional model's layers as JSON. A structure becomes a
        list there, its constant tensors become nested lists, and its tuples lists.

        Raises:
            ValueError: if `structure` is anything else.
        """
        if structure is None or isinstance(structure, cls):
            return structure
        fields = structure if isinstance(structure, (list, tuple)) else ()
        named = dict(zip(cls._fields, fields, strict=False))
        are_tuples = all(isinstance(named.get(name, ()), (list, tuple)) for name in _TUPLES)
        if not 3 <= len(fields) <= len(cls._fields) or not are_tuples:
            argument_checks.fail(
                f"`structure` must be a GlobalLocalStructure. Received: {type(structure).__name__}"
            )
        for name, value in named.items():
            maker = _TUPLES.get(name)
            named[name] = tuple(map(maker, value)) if maker else _tensor_of(value)
        return cls(**named)

    def l2l(self, local_radius, implementation="auto"):
        """`KeyRules` of long queries and long keys within the radius, in any implementation."""
        masks = [masks_ops.SegmentMask(self.long_segment_ids, self.long_segment_ids)]
        known = self.pairs
        hard = known.hard_l2l if known else hard_l2l(self, local_radius)
        if hard is not None:
            masks.append(masks_ops.ValueMask(pair_values.ByOffset(hard, local_radius)))
        return KeyRules(tuple(masks), self._l2l_labels(local_radius))

    def _l2l_labels(self, local_radius):
        if not self.has_labels:
            return None
        if not self.has_l2l_ids:
            function = ClippedOffsets(self.max_distance)
            return lambda labels: labels_ops.OffsetLabels(labels.tables, function)
        known = self.pairs
        ids = known.l2l_labels if known else l2l_labels(self, local_radius)
        values = pair_values.ByOffset(ids, local_radius)
        return lambda labels: labels_ops.IdLabels(labels.tables, values)

    def l2g(self):
        """`KeyRules` of long queries and global keys."""
        masks = [masks_ops.SegmentMask(self.long_example_ids, self.global_example_ids)]
        if self.use_hard_l2g_mask:
            hard = self._hard_links(of_long_queries)
            masks.append(masks_ops.LinkMask(hard, self.ignore_hard_l2g_mask))
        return KeyRules(tuple(masks), self._link_labels(of_long_queries))

    def g2g(self):
        """`KeyRules` of global queries and global keys."""
        masks = [masks_ops.SegmentMask(self.global_example_ids, self.global_example_ids)]
        known = self.pairs
        hard = known.hard_g2g if known else hard_g2g(self)
        if hard is not None:
            masks.append(masks_ops.ValueMask(pair_values.Dense(hard)))
        ids = known.g2g_labels if known else g2g_labels(self)
        if ids is None:
            return KeyRules(tuple(masks), None)
        values = pair_values.Dense(ids)
        return KeyRules(tuple(masks), lambda labels: labels_ops.IdLabels(labels.tables, values))

    def g2l(self):
        """`KeyRules` of global queries and long keys."""
        masks = [masks_ops.SegmentMask(self.global_example_ids, self.long_example_ids)]
        if self.use_hard_g2l_mask:
            hard = self._hard_links(of_long_keys)
            masks.append(masks_ops.LinkMask(hard, self.ignore_hard_g2l_mask))
        return KeyRules(tuple(masks), self._link_labels(of_long_keys))

    def global_keys(self, own, other):
        """The keys of global queries: (keys and values, `KeyRules`) of the global and the long."""
        return [(own, self.g2g()), (other, self.g2l())]

    @property
    def has_l2l_ids(self):
        """Whether labels of pairs of long tokens depend on more than their offset."""
        is_related = any(x.has_labels for x in self.relations_between("l2l"))
        return self.has_labels and (is_related or not self.max_distance)

    def relations_between(self, piece):
        """The relations of a piece: 'l2l', 'g2g' or, for both directions, 'l2g'."""
        return [x for x in self.named_relations().values() if x.piece == piece]

    def sizes(self, local_radius=None):
        """`relations.Sizes` of the inputs."""
        long_len = get_shape_list(self.long_example_ids)[1]
        batch, global_len = get_shape_list(self.global_example_ids)
        return relations_ops.Sizes(batch, long_len, global_len, local_radius)

    def _hard_links(self, links_of):
        return tuple(links_of(x, pairs) for x, pairs in self._links() if x.is_hard)

    def _links(self):
        """(relation, pairs) of the relations between long and global tokens; see `link_pairs`."""
        pairs = self.pairs.link_pairs if self.pairs else link_pairs(self)
        return list(zip(self.relations_between("l2g"), pairs, strict=True))

    def _link_labels(self, links_of):
        """Labels of linked pairs, with long tokens as queries or as keys."""
        if not self.has_labels:
            return None
        labeled = (link for link in self._links() if link[0].has_labels)
        relations = tuple(
            (tuple(itertools.starmap(links_of, group)), label)
            for label, group in itertools.groupby(labeled, key=lambda link: link[0].label)
        )
        unlinked = self.labels.cross
        return lambda labels: labels_ops.LinkLabels(labels.tables, unlinked, relations)


def _relation(value):
    relation = relations_ops.Relation.of(value)
    if relation is None:
        argument_checks.fail(
            f"`structure.relations` must hold relations. Received: {type(value).__name__}"
        )
    return relation


def _relation_of(value):
    relation = _relation(value)
    return relation._replace(ids=_tensor_of(relation.ids))


def _tensor_of(value):
    """Converts nested lists to a tensor; returns anything else unchanged."""
    return tf.constant(value, tf.int32) if isinstance(value, (list, tuple)) else value


# Fields that are tuples, with functions that convert their elements from lists.
_TUPLES = {"links": _tensor_of, "label_links": _tensor_of, "relations": _relation_of}
