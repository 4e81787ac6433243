"""Relative labels and biases: what is added to the logit of a pair, besides `query . key`.

Each query has label logits, `query . label_embedding + label_bias`, one for each label (paper,
appendix A); subclasses of `TableLabels` determine the label of each pair. `PairBiases` adds a given
number for each pair. The logits of one step are [num_heads, batch, tiles, rows, window].
"""

import dataclasses
import functools
import operator
from typing import NamedTuple, Protocol

import tensorflow as tf

from etcmodel.ops import argument_checks, pair_values, products
from etcmodel.ops import offsets as offsets_ops
from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.shapes import at_least, ceil_div, get_shape_list, pad_axis
from etcmodel.ops.windows import Band

__all__ = [
    "IdLabels",
    "LabelLogits",
    "LabelTables",
    "Labels",
    "LinkLabels",
    "OffsetLabels",
    "OneHotIdLabels",
    "PairBiases",
    "RowOffsetLabels",
    "TableLabels",
    "add_bias",
]


@dataclasses.dataclass(frozen=True)
class LabelTables:
    """The parameters of labels; at least one of the two is given.

    Attributes:
        embeddings: float [num_labels, num_heads, size_per_head] or None.
        biases: float [num_labels, num_heads] or None. Like what embeddings add, they are scaled by
            1 / sqrt(size_per_head), as queries are; those of `PairBiases` are not.

    >>> from etcmodel.ops import labels
    >>> tables = labels.LabelTables(embeddings=tf.zeros([5, 2, 4]), biases=tf.zeros([5, 2]))
    >>> [tuple(x.shape) for x in tables.tensors()]  # Of 5 labels and 2 heads.
    [(5, 2, 4), (5, 2)]
    """

    embeddings: tf.Tensor | None = None
    biases: tf.Tensor | None = None

    def rows(self, function):
        """Applies a function to each table, such as one that selects rows."""
        tables = (self.embeddings, self.biases)
        return LabelTables(*(None if table is None else function(table) for table in tables))

    def tensors(self):
        """List of the tables that are not None."""
        return [table for table in (self.embeddings, self.biases) if table is not None]

    def of(self, tensors):
        """Returns the same tables with other tensors, in the order of `tensors()`."""
        tensors = iter(tensors)
        return self.rows(lambda _: next(tensors))


class LabelLogits(NamedTuple):
    """Logits of queries by label: the sum of two parts, one of which may be None.

    Attributes:
        of_embeddings: float [num_heads, batch, tiles, rows, labels].
        of_biases: float32 [num_heads, 1, 1, 1, labels].

    >>> from etcmodel.ops import labels
    >>> labels.LabelLogits(tf.zeros([2, 1, 1, 3, 5]), tf.ones([2, 1, 1, 1, 5])).total().shape
    TensorShape([2, 1, 1, 3, 5])
    """

    of_embeddings: tf.Tensor | None
    of_biases: tf.Tensor | None

    def total(self):
        """The sum of the parts: float32."""
        summands = [tf.cast(x, tf.float32) for x in self if x is not None]
        return summands[0] if len(summands) == 1 else summands[0] + summands[1]


class Labels(Protocol):
    """The interface of labels: what is added to the logits of a key set's pairs.

    >>> from etcmodel.ops import labels, offsets
    >>> tables = labels.LabelTables(biases=tf.zeros([5, 2]))
    >>> of_pairs = labels.OffsetLabels(tables, offsets.ClippedOffsets(2))
    >>> [tuple(x.shape) for x in of_pairs.tensors()]
    [(5, 2)]
    """

    def prepare(self, view):
        """Returns the same labels for a `reach.View`: tensors arranged as its rows and keys."""

    def tensors(self):
        """The float tensors with a gradient: list."""

    def for_steps(self, tensors):
        """Prepared labels for the steps, with other tensors in the order of `tensors()`."""

    def logits(self, logits, queries, bias, pairs, scale):
        """Adds the labels' logits and an attention bias to logits, in one pass.

        Args:
            logits: float [num_heads, batch, tiles, rows, window].
            queries: float [num_heads, batch, tiles, rows, size_per_head], scaled.
            bias: float32, broadcast to [batch, tiles, rows, window].
            pairs: `reach.Pairs`.
            scale: float. The factor by which queries have already been multiplied.
        Returns:
            float32, shaped as `logits`.
        """

    def gradients(self, gradient, queries, pairs, scale):
        """The gradients of queries and tensors, from that of the logits.

        Args: see `logits`; `gradient` is shaped as the logits.
        Returns:
            (gradient of the scaled queries or None, list of this step's gradients of `tensors()`).
        """

    def piece_spec(self, x, step_rows):
        """`tf.TensorSpec` of a step's gradient of a tensor; None if those of all steps are summed.

        Args:
            x: one of the tensors given to `for_steps`.
            step_rows: int, or None if it is not known when tracing.
        """

    def join(self, gradients):
        """Gradients of `tensors()`, from sums over the steps or from stacked results of steps."""


class TableLabels(Labels):
    """Labels from a table, one for each pair. Subclasses, which are dataclasses, choose it.

    Attributes:
        tables: `LabelTables`; in the steps with heads first, [num_heads, num_labels, …].

    >>> from etcmodel.ops import labels
    >>> [issubclass(x, labels.TableLabels) for x in (labels.OffsetLabels, labels.PairBiases)]
    [True, False]
    """

    tables: LabelTables

    def split(self, x):
        """Splits [num_heads, rows of the table, …] into parts with separate label logits."""
        return [x]

    def add(self, logits, label_logits, bias, pairs):
        """Adds label logits and an attention bias to logits, in one pass.

        Args:
            logits, bias, pairs: as in `logits`.
            label_logits: list with the `LabelLogits` of each part of `split`.
        Returns:
            float32, shaped as `logits`.
        """

    def collect(self, gradient, pairs):
        """The gradients of the label logits, from that of the logits.

        Returns:
            list with [num_heads, batch, tiles, rows, labels] for each part of `split`.
        """

    def tensors(self):
        return self.tables.tensors()

    def for_steps(self, tensors):
        return dataclasses.replace(self, tables=_heads_first(self.tables.of(tensors)))

    def logits(self, logits, queries, bias, pairs, scale):
        embeddings, biases = self.tables.embeddings, self.tables.biases
        of_embeddings = of_biases = [None] * len(self.split(self.tensors()[0]))
        if embeddings is not None:
            parts = self.split(embeddings)
            of_embeddings = [products.by_label(queries, x, transpose=True) for x in parts]
        if biases is not None:
            parts = self.split(tf.cast(biases, tf.float32) * scale)
            of_biases = [x[:, tf.newaxis, tf.newaxis, tf.newaxis] for x in parts]
        return self.add(logits, list(map(LabelLogits, of_embeddings, of_biases)), bias, pairs)

    def gradients(self, gradient, queries, pairs, scale):
        by_label = [tf.cast(x, queries.dtype) for x in self.collect(gradient, pairs)]
        query_gradient, tables = None, []
        if self.tables.embeddings is not None:
            embeddings = self.split(self.tables.embeddings)
            of_parts = map(products.by_label, by_label, embeddings)
            query_gradient = functools.reduce(operator.add, of_parts)
            gradients = [products.label_by_size(x, queries) for x in by_label]
            tables.append(tf.concat([tf.cast(x, tf.float32) for x in gradients], 1))
        if self.tables.biases is not None:
            sums = [tf.reduce_sum(tf.cast(x, tf.float32), [1, 2, 3]) for x in by_label]
            tables.append(scale * tf.concat(sums, 1))
        return query_gradient, tables

    def piece_spec(self, x, step_rows):
        return None

    def join(self, gradients):
        return _heads_first(
            self.tables.of(gradients)
        ).tensors()  # The transposition is its own inverse.


def _heads_first(tables):
    """Transposes label tables [labels, heads, …] to [heads, labels, …]."""
    return tables.rows(lambda x: tf.transpose(x, [1, 0, 2] if len(x.shape) == 3 else [1, 0]))


def add_bias(logits, bias):
    """Adds an attention bias to logits without labels: float32.

    >>> from etcmodel.ops import labels
    >>> labels.add_bias(tf.constant([1.0, 2.0], tf.bfloat16), tf.constant([0.0, -10000.0])).numpy()
    array([ 1.000e+00, -9.998e+03], dtype=float32)
    """
    return tf.cast(logits, tf.float32) + bias


@compiled_elementwise
def _add_by_pair(logits, by_pair, bias):
    return tf.cast(logits, tf.float32) + tf.cast(by_pair, tf.float32) + bias


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


@dataclasses.dataclass(frozen=True)
class OffsetLabels(TableLabels):
    """Labels pairs by key position minus query position.

    Attributes:
        tables: `LabelTables`.
        function: `offsets.OffsetFunction`.

    >>> from etcmodel.ops import blockwise, key_sets, labels, offsets
    >>> tables = labels.LabelTables(biases=tf.constant([[0.0], [9.0], [0.0]]))  # For the next key.
    >>> of_pairs = labels.OffsetLabels(tables, offsets.ClippedOffsets(1))
    >>> keys = key_sets.KeySet(tf.zeros([1, 2, 1, 4]), tf.eye(2)[None, :, None], labels=of_pairs)
    >>> blockwise.attend(tf.zeros([1, 2, 1, 4]), [keys])[0, :, 0].numpy().round(2)
    array([[0.01, 0.99],
           [0.5 , 0.5 ]], dtype=float32)
    """

    tables: LabelTables
    function: offsets_ops.OffsetFunction

    def prepare(self, view):
        if view.own_column is None:
            return IdLabels(self.tables, _OffsetValues(self.function))
        before = self._columns(view.reach.farthest_before, view.stride)
        after = self._columns(view.reach.farthest_after, view.stride)
        band = Band(before - 1, after - 1, view.tiles.rows, view.window, view.own_column)
        labels = self.function.labels(tf.range(-before, after + 1) * view.stride)

        def rows(table):
            rows = tf.gather(table, labels)
            left, right = rows[:1], rows[-1:]
            near = tf.concat([rows[1:before] - left, rows[before:-1] - right], 0)
            missing = at_least(0, band.width - (before + after - 1))
            return tf.concat([pad_axis(near, 0, after=missing), left, right], 0)

        return _BandLabels(self.tables.rows(rows), band)

    def _columns(self, farthest, stride):
        """Columns from a query to where all keys on a side within reach have the same label."""
        return max(1, ceil_div(min(self.function.max_distance, farthest), stride))


@dataclasses.dataclass(frozen=True)
class _OffsetValues(pair_values.PairValues):
    """The labels of an offset function, computed for each pair."""

    function: object

    def prepare(self, view):
        return self

    def of(self, pairs):
        return self.function.labels(pairs.key_positions() - pairs.query_positions())[tf.newaxis]


@dataclasses.dataclass(frozen=True)
class _BandLabels(TableLabels):
    """Labels of offsets where all far offsets on a side have the same label.

    Each pair first gets the label logit of its side, left or right of the query. The near offsets
    form a diagonal band of the logits; their label logits are stored as differences from those of
    the side, and are added.

    Attributes:
        tables: `LabelTables` with the rows of the band's offsets, then zeros that pad the band to
            `Band.width` (so that the shear needs no copy), then the rows of the left and the right
            side.
        band: `windows.Band` of the near offsets.
    """

    tables: LabelTables
    band: Band

    def split(self, x):
        return [x[:, :-2], x[:, -2:]]

    def add(self, logits, label_logits, bias, pairs):
        near, sides = label_logits
        band = self.band
        static = {"left": band.left, "right": band.right, "own_column": band.own_column}
        return _add_sheared(logits, *near, *sides, bias, **static)

    def collect(self, gradient, pairs):
        right = tf.reduce_sum(_keep_right(gradient, own_column=self.band.own_column), axis=-1)
        sides = tf.stack([tf.reduce_sum(gradient, axis=-1) - right, right], axis=-1)
        return [self.band.from_columns(gradient), sides]


@compiled_elementwise
def _add_sheared(logits, near, near_biases, sides, side_biases, bias, *, left, right, own_column):
    *_, rows, window = get_shape_list(logits)
    band = Band(left, right, rows, window, own_column)
    near = LabelLogits(near, near_biases).total()
    if near.shape[3] == 1:  # The same for all rows.
        near = tf.repeat(near, rows, axis=3)
    sides = LabelLogits(sides, side_biases).total()
    sides = tf.where(_is_right(logits, own_column), sides[..., 1:], sides[..., :1])
    return tf.cast(logits, tf.float32) + sides + band.to_columns(near) + bias


@compiled_elementwise
def _keep_right(gradient, *, own_column):
    is_right = _is_right(gradient, own_column)
    return tf.where(is_right, gradient, tf.zeros([], gradient.dtype))


def _is_right(pairs, own_column):
    """Whether the key is at the query's position or after it: bool [rows, window]."""
    *_, rows, window = get_shape_list(pairs)
    return tf.range(window) - own_column >= tf.range(rows)[:, tf.newaxis]


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
        return _add_by_pair(logits, by_pair, bias)

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
