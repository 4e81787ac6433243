"""Label tables, label logits, and the interface of labels."""

import dataclasses
import functools
import operator
from typing import NamedTuple, Protocol

import tensorflow as tf

from etcmodel.ops import products

__all__ = ["LabelLogits", "LabelTables", "Labels", "TableLabels", "add_bias"]


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
