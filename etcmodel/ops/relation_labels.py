"""The numbering of relative labels: the meaning of each row of the label tables."""

import dataclasses

from etcmodel.ops.errors import fail

_OTHERS = ("cross", "linked", "other_segment")


@dataclasses.dataclass(frozen=True)
class RelationLabels:
    """The labels of pairs of tokens, from 0 up (paper, sections 3.1 and 3.2).

    First come relative positions within the long and within the global input: 0 for the token
    itself, then the `max_distance` positions to the right, then those to the left. The last label
    of each side is also that of all positions farther away. Then come `cross`, `linked` and
    `other_segment`. The other rows of the tables are free for named relations:
    `RelationLabels(12, 32, ("cites",))["cites"]`.

    Attributes:
        max_distance: int. The model's `relative_pos_max_distance`.
        vocab_size: int or None. Number of rows of the tables, the model's `relative_vocab_size`.
            None: not checked.
        names: tuple of str. Names of free labels, in order, which must not change once a model has
            been trained with them.
    Raises:
        ValueError: if `max_distance` is negative, a name occurs twice or already has a label, or
            the tables have too few rows.
    """

    max_distance: int
    vocab_size: int | None = None
    names: tuple = ()

    def __post_init__(self):
        if self.max_distance < 0:
            fail(f"`max_distance` must not be negative. Received: {self.max_distance}")
        named = (*_OTHERS, *self.names)
        if repeated := sorted({name for name in named if named.count(name) > 1}):
            fail(f"Each label has a name of its own. Received twice: {repeated}")
        if self.names and self.vocab_size is not None and self.vocab_size < self._end:
            fail(
                f"A table of {self.vocab_size} labels (`relative_vocab_size`), of which "
                f"{self.num_reserved} have a meaning, leaves "
                f"{max(0, self.vocab_size - self.num_reserved)} free. Received {len(self.names)} "
                f"names: {list(self.names)}. Set `relative_vocab_size` to {self._end} or more."
            )

    @property
    def num_positions(self):
        """Number of labels for relative positions: int."""
        return 2 * self.max_distance + 1

    @property
    def cross(self):
        """The label between a long and a global token that are not linked."""
        return self.num_positions

    @property
    def linked(self):
        """The label between a long and a global token that are linked."""
        return self.num_positions + 1

    @property
    def other_segment(self):
        """The label between global tokens of different segments."""
        return self.num_positions + 2

    @property
    def num_reserved(self):
        """The first free label, which is also the least number of rows of the tables: int."""
        return self.num_positions + len(_OTHERS)

    @property
    def _end(self):
        return self.num_reserved + len(self.names)

    @property
    def offsets(self):
        """For each label of a position, the key position minus the query position."""
        k = self.max_distance
        return (*range(k + 1), *range(-1, -k - 1, -1))

    def __getitem__(self, name):
        """The label of a name: one of `names`, "cross", "linked" or "other_segment"."""
        named = (*_OTHERS, *self.names)
        if name not in named:
            fail(f"There is no label {name!r}. There are: {list(named)}")
        return self.num_positions + named.index(name)

    def check_names(self, relations):
        """Checks that names and labels of relations, and of these labels, are one to one.

        Args:
            relations: iterable of `relations.Relation`.
        Raises:
            ValueError: naming the conflict.
        """
        names, label_of = {}, {}
        for relation in relations:
            if relation.label is None:
                continue
            name, label = relation.name, relation.label
            other = self.name_of(label) or names.setdefault(label, name)
            if other != name:
                fail(
                    f"Relation {name!r} has the label of {other!r}, {label}. Free labels begin at "
                    f"{self.num_reserved}, and each is for one name"
                )
            if label_of.setdefault(name, label) != label:
                fail(
                    f"Relation {name!r} has two labels, {label_of[name]} and {label}. Give one of "
                    "them another name"
                )

    def name_of(self, label):
        """The name of a label; None for a free label without a name."""
        if label < self.num_positions:
            return f"position {self.offsets[label]:+d}"
        if label < self._end:
            return (*_OTHERS, *self.names)[label - self.num_positions]
        return None
