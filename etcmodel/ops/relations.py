"""Named relations: the pairs of tokens for which they hold, and the label of these pairs.

A `GlobalLocalStructure` takes any number of them (`with_relations`). Each kind of relation is a
subclass of `Relation`, here or elsewhere, which defines the shape of its tensor, the pairs that the
tensor stands for, invalid values, and the name of its feature in batches. Edges are directed: the
first token is the query and the second the key. Links are not directed.
"""

import abc
from typing import NamedTuple

import tensorflow as tf

from etcmodel.ops import argument_checks
from etcmodel.shown_values import shown
from etcmodel.signatures import is_defined_anew

__all__ = [
    "KINDS",
    "PIECES",
    "GlobalEdges",
    "GlobalLabels",
    "LinkIds",
    "LinkPairs",
    "LongEdges",
    "LongLabels",
    "Relation",
    "Sizes",
]


KINDS: dict[str, type] = {}  # Of relations, by the names of their classes, as `Relation.kind`.
PIECES = {  # Of the attention, query side first, with the axes of their pairs.
    "l2l": "batch? long_len 2*local_radius+1",
    "g2g": "batch? global_len global_len",
    "l2g": "batch? long_len global_len",  # For both directions.
}


class Sizes(NamedTuple):
    """Sizes of the inputs: int or scalar tensor; `local_radius` int, for pairs of long tokens."""

    batch: object
    long_len: object
    global_len: object
    local_radius: int | None = None


class _Fields(NamedTuple):
    ids: tf.Tensor
    name: str
    label: int | None
    is_hard: bool
    kind: str


class Relation(_Fields, metaclass=abc.ABCMeta):
    """The base of all kinds of relations; a tuple, so that Keras can serialize it.

    A subclass is a kind of its own, named after the class, unless that name begins with "_". It
    implements `holds`, `wrong` and `limits`, and sets, as class attributes:

    - `piece`: str. Between which tokens: "g2g", "l2l" (within the local radius), or "l2g", long and
      global ones, in both directions.
    - `axes`: str. The axes of `ids`, such as "batch global_len": see
      `argument_checks.check_shapes`.
    - `feature`: str or None. Its name in batches, "<feature>/<name>"; None: it is in no batch.
    - `wish`, `entry`: for error messages, what `ids` must contain, and words for the indices of
      `wrong` after the batch axis, such as ("at token",).

    Attributes:
        ids: int tensor. The pairs; see the subclasses.
        name: str.
        label: int or None. The label of these pairs (`RelationLabels`); None if they keep their
            label.
        is_hard: bool. Whether hard masks follow the relation. For links: with `use_hard_g2l_mask`
            and `use_hard_l2g_mask`, tokens attend only to the tokens that a hard link connects them
            to. For edges: in its own input, a token attends only to itself and the tokens that a
            hard edge leads to.
        kind: str. The name of the class.
    Raises:
        ValueError: if the name is empty or the label is not an int of at least 0; if a kind is
            defined whose name, or feature, another one has; if its `piece` or `axes` are missing.
    """

    __slots__ = ()
    feature = None
    piece = None
    axes = None
    entry = ()
    wish = "valid entries"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__name__.startswith("_"):
            return
        cls.feature = feature = vars(cls).get("feature")  # Not inherited by subclasses.
        if feature and not cls.axes:
            raise ValueError(f"{cls.__name__} has a `feature`, and needs `axes`, too.")
        if feature and (feature == "labels" or "/" in feature):
            raise ValueError(
                f"The `feature` of {cls.__name__} must have no '/', and not be 'labels', which are "
                f"for losses. Received: {feature!r}"
            )
        for other in KINDS.values():
            if is_defined_anew(cls, other):
                continue
            if cls.__name__ == other.__name__ or feature and feature == other.feature:
                raise ValueError(
                    f"There is another kind of relation, {other.__module__}.{other.__name__}, of "
                    f"the name {cls.__name__!r} or the feature {feature!r}."
                )
        KINDS[cls.__name__] = cls

    def __new__(cls, ids, name, label=None, is_hard=False, *kind):
        if cls.__abstractmethods__:  # Python itself does not check this for subclasses of tuple.
            missing = ", ".join(sorted(cls.__abstractmethods__))
            raise TypeError(f"{cls.__name__} is abstract: it lacks {missing}.")
        if not kind:  # Otherwise `tf.nest` makes a copy, whose fields may be anything.
            cls._check(name, label)
            kind = (cls.__name__,)
        return super().__new__(cls, ids, name, label, is_hard, *kind)

    @classmethod
    def _check(cls, name, label):
        if cls.piece not in PIECES or not cls.axes:
            argument_checks.fail(
                f"{cls.__name__} needs a `piece`, one of {', '.join(map(repr, PIECES))}, and the "
                f"`axes` of its ids. Received: {cls.piece!r} and {cls.axes!r}"
            )
        if not isinstance(name, str) or not name:
            argument_checks.fail(f"A relation needs a name. Received: {name!r}")
        if label is not None and (type(label) is not int or label < 0):
            argument_checks.fail(
                f"The label of relation {name!r} must be an int, at least 0. Received: {label!r}"
            )

    @staticmethod
    def of(value):
        """Returns a relation, also from its list in JSON; None for anything else.

        Raises:
            ValueError: if no kind of the list's name is defined.
        """
        if isinstance(value, Relation):
            return value
        if not isinstance(value, (list, tuple)) or len(value) != len(_Fields._fields):
            return None
        *fields, kind = value
        if not isinstance(kind, str):
            return None
        if kind not in KINDS:
            argument_checks.fail(
                f"There is no kind of relation of the name {shown(kind)}; the known ones are "
                f"{', '.join(map(repr, KINDS))}. Import yours first."
            )
        return KINDS[kind](*fields)

    @property
    def has_labels(self):
        """Whether the relation gives labels to pairs."""
        return self.label is not None

    @abc.abstractmethod
    def holds(self, sizes):
        """Marks the pairs for which the relation holds, given `Sizes`.

        Returns:
            bool [batch, queries, keys], or by offset [batch, long_len, 2 * local_radius + 1].
        """

    def labels(self, sizes):
        """The label of each pair, -1 for pairs that keep theirs: int32, shaped as `holds`."""
        return tf.where(self.marks(sizes), -1 if self.label is None else self.label, -1)

    @abc.abstractmethod
    def wrong(self, sizes, vocab_size):
        """Whether each entry is invalid, as it refers to no pair of tokens or no label: bool."""

    @abc.abstractmethod
    def limits(self, sizes, vocab_size):
        """The limits of the entries, as words and numbers for an error message."""

    def marks(self, sizes):
        """Same as `holds`, whose result is checked.

        Raises:
            ValueError: if its type is not bool, or its shape not that of the piece's pairs.
        """
        return self._of_pairs("holds", tf.bool, sizes)

    def label_ids(self, sizes):
        """Same as `labels`, whose result is checked, as by `marks`."""
        return self._of_pairs("labels", tf.int32, sizes)

    def _of_pairs(self, method, dtype, sizes):
        found, what = getattr(self, method)(sizes), f"{type(self).__name__}.{method}"
        argument_checks.check_returned(what, found, dtype)
        known = {name: x for name, x in sizes._asdict().items() if isinstance(x, int)}
        if sizes.local_radius is not None:
            known["2*local_radius+1"] = 2 * sizes.local_radius + 1
        argument_checks.check_shapes({what: found}, {what: PIECES[self.piece]}, known)
        return found

    def int32(self):
        """The ids as an int32 tensor; those too large for one become its largest number."""
        return tf.saturate_cast(self.ids, tf.int32)  # A plain cast would wrap large ids around.

    def int64(self):
        """The ids as an int64 tensor."""
        return tf.cast(self.ids, tf.int64)


class LinkIds(Relation):
    """Links each long token to one global token: int [batch, long_len], -1 for none."""

    __slots__ = ()
    piece = "l2g"
    axes = "batch long_len"
    entry = ("at token",)
    wish = "indices of global tokens, or -1 for no link"

    def holds(self, sizes):
        return tf.equal(self.int32()[:, :, tf.newaxis], tf.range(sizes.global_len))

    def wrong(self, sizes, vocab_size):
        ids, global_len = self.int64(), tf.cast(sizes.global_len, tf.int64)
        return ((ids < -1) | (ids >= global_len)) & (global_len > 0)

    def limits(self, sizes, vocab_size):
        return ["for", sizes.global_len, "global tokens"]


class _Pairs(Relation):
    """int [batch, num_pairs, 2]: indices of the two tokens of each pair; -1 twice as padding."""

    __slots__ = ()
    axes = "batch num_edges* 2"
    entry = ("at edge",)
    sides = (None, None)

    def holds(self, sizes):
        firsts, seconds = tf.unstack(self.int32(), 2, axis=-1)
        lengths = [self._length(side, sizes) for side in self.sides]
        return _marked(firsts, seconds, [sizes.batch, *lengths])

    def wrong(self, sizes, vocab_size):
        firsts, seconds = tf.unstack(self.int64(), 2, axis=-1)
        is_padding = tf.equal(firsts, -1) & tf.equal(seconds, -1)
        is_inside = tf.ones_like(is_padding)
        for ids, side in zip((firsts, seconds), self.sides, strict=True):
            is_inside &= (ids >= 0) & (ids < tf.cast(self._length(side, sizes), tf.int64))
        return ~is_padding & ~is_inside

    def limits(self, sizes, vocab_size):
        first, second = [(self._length(side, sizes), f"{side} tokens") for side in self.sides]
        # Lengths may be tensors of a graph, whose values are not known here.
        is_one = self.sides[0] == self.sides[1]
        return ["for", *first] if is_one else ["for", *first, "and", *second]

    @staticmethod
    def _length(side, sizes):
        return sizes.long_len if side == "long" else sizes.global_len


class LinkPairs(_Pairs):
    """Links long to global tokens: int [batch, num_pairs, 2], (long, global); -1, -1 as padding.

    >>> from etcmodel.ops import relations
    >>> links = relations.LinkPairs([[[5, 0], [6, 1]]], name="mentions", label=29)
    >>> links.name, links.label, links.piece
    ('mentions', 29, 'l2g')
    """

    __slots__ = ()
    feature = "links"
    axes = "batch num_pairs* 2"
    piece = "l2g"
    sides = ("long", "global")
    wish = "pairs (long token, global token), or -1 twice as padding"


class GlobalEdges(_Pairs):
    """Edges between global tokens: int [batch, num_edges, 2], (from, to); -1, -1 as padding.

    >>> from etcmodel.ops import relations
    >>> edges = relations.GlobalEdges([[[0, 1], [-1, -1]]], name="cites", label=28)
    >>> edges.name, edges.label, edges.piece
    ('cites', 28, 'g2g')
    """

    __slots__ = ()
    feature = "edges"
    piece = "g2g"
    sides = ("global", "global")
    wish = "pairs of global tokens, or -1 twice as padding"


class LongEdges(_Pairs):
    """Edges between long tokens that are no farther apart than the model's `local_radius`.

    Shaped like `GlobalEdges`. `EtcModel` refuses edges between tokens farther apart; elsewhere they
    have no effect, since such tokens do not attend to each other.
    """

    __slots__ = ()
    feature = "long_edges"
    piece = "l2l"
    sides = ("long", "long")
    wish = "pairs of long tokens within the local radius of each other, or -1 twice as padding"

    def holds(self, sizes):
        queries, keys = tf.unstack(self.int32(), 2, axis=-1)
        radius = sizes.local_radius
        is_key = (keys >= 0) & (keys < sizes.long_len)
        columns = tf.where(is_key, keys - queries + radius, -1)
        return _marked(queries, columns, [sizes.batch, sizes.long_len, 2 * radius + 1])

    def wrong(self, sizes, vocab_size):
        queries, keys = tf.unstack(self.int64(), 2, axis=-1)
        return super().wrong(sizes, vocab_size) | (tf.abs(queries - keys) > sizes.local_radius)

    def limits(self, sizes, vocab_size):
        return ["for", sizes.long_len, "long tokens and radius", sizes.local_radius]


class _Labels(Relation):
    """A label for each pair, or -1 for pairs that keep theirs: several relations in one tensor."""

    __slots__ = ()
    has_labels = True
    wish = "labels of the model's table, or -1"

    @classmethod
    def _check(cls, name, label):
        super()._check(name, label)
        if label is not None:
            argument_checks.fail(f"The labels of relation {name!r} are its ids. Received: {label=}")

    def holds(self, sizes):
        return self.labels(sizes) >= 0

    def wrong(self, sizes, vocab_size):
        ids = self.int64()
        return (ids < -1) | (ids >= vocab_size)

    def limits(self, sizes, vocab_size):
        return ["for", vocab_size, "labels (`relative_vocab_size`)"]


class GlobalLabels(_Labels):
    """Labels between global tokens: int [batch, global_len, global_len], queries first."""

    __slots__ = ()
    piece = "g2g"
    axes = "batch global_len global_len"
    entry = ("at query", "and key")

    def labels(self, sizes):
        return self.int32()


class LongLabels(_Labels):
    """Labels between long tokens: int [batch, long_len, 2 * local_radius + 1].

    Column j of a token is for the key `j - local_radius` positions to its right.
    """

    __slots__ = ()
    piece = "l2l"
    axes = "batch long_len 2*local_radius+1"
    entry = ("at query", "and column")

    def labels(self, sizes):
        return self.int32()


def _marked(rows, columns, shape):
    """Marks the entries of a matrix that are listed in each example.

    Args:
        rows, columns: int32 [batch, num_entries]. Indices outside the matrix are ignored.
        shape: list [batch, num_rows, num_columns] of ints or scalar tensors.
    Returns:
        bool of this shape.
    """
    batch, num_rows, num_columns = shape
    is_inside = (rows >= 0) & (rows < num_rows) & (columns >= 0) & (columns < num_columns)
    places = (tf.range(batch)[:, tf.newaxis] * num_rows + rows) * num_columns + columns
    counts = tf.math.unsorted_segment_sum(
        tf.cast(is_inside, tf.float32),
        tf.where(is_inside, places, -1),
        batch * num_rows * num_columns,
    )
    return tf.reshape(counts > 0, shape)
