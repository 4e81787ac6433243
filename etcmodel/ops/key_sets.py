"""Sets of keys that an attention's queries attend to, and one step's computations with each."""

import dataclasses

import tensorflow as tf

from etcmodel.ops import labels as labels_ops
from etcmodel.ops import masks as masks_ops
from etcmodel.ops import products
from etcmodel.ops import reach as reach_ops
from etcmodel.ops.shapes import get_shape_list

__all__ = ["KeySet", "Part", "PreparedKeySet"]


@dataclasses.dataclass(frozen=True)
class KeySet:
    """Keys and values, with the reach, the masks and the labels of all queries.

    Attributes:
        keys: float [batch, num_keys, num_heads, size_per_head].
        values: float [batch, num_keys, num_heads, value_size_per_head].
        reach: `reach.Reach`.
        masks: tuple of `masks.Mask`. A pair attends if all of them allow it.
        labels: `labels.Labels` or None.
        queries: float [batch, num_rows, num_heads, size_per_head], as the call's queries, or None.
            What these keys, and their labels, are multiplied by in place of the call's queries.

    >>> from etcmodel.ops import key_sets, reach
    >>> keys = key_sets.KeySet(tf.zeros([1, 4, 2, 8]), tf.zeros([1, 4, 2, 3]), reach.Window(1, 1))
    >>> keys.num_keys, keys.value_size
    (4, 3)
    """

    keys: tf.Tensor
    values: tf.Tensor
    reach: reach_ops.Reach = reach_ops.ALL
    masks: tuple = ()
    labels: labels_ops.Labels | None = None
    queries: tf.Tensor | None = None

    @property
    def num_keys(self):
        """int or scalar tensor."""
        return get_shape_list(self.keys)[1]

    @property
    def value_size(self):
        """int."""
        return self.values.shape[-1]

    def tensors(self):
        """The tensors that have a gradient: list."""
        labels = [] if self.labels is None else self.labels.tensors()
        return [self.keys, self.values, *labels, *([] if self.queries is None else [self.queries])]

    def by_head(self, x):
        """Transposes keys or values to [num_heads, batch, num_keys, size]."""
        return tf.transpose(x, [2, 0, 1, 3])

    def prepare(self):
        """Returns this set as a `PreparedKeySet`."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        prepared = {name: self.by_head(fields[name]) for name in ("keys", "values")}
        return PreparedKeySet(**{**fields, **prepared})


@dataclasses.dataclass(frozen=True)
class PreparedKeySet(KeySet):
    """A key set that is already transposed: a cache for many calls of `attend`, as in decoding.

    Attributes:
        keys: float [num_heads, batch, num_keys, size_per_head].
        values: float [num_heads, batch, num_keys, value_size_per_head].
    """

    @property
    def num_keys(self):
        return get_shape_list(self.keys)[2]

    def by_head(self, x):
        return x

    def prepare(self):
        return self


@dataclasses.dataclass(frozen=True)
class Part:
    """The computations of one step with one key set.

    Attributes:
        view: `reach.View` of the keys.
        masks: tuple of prepared `masks.Mask`.
        labels: `labels.Labels`, from `for_steps`, or None.
        scale: float. The factor by which queries have already been multiplied.
        keys: [num_heads, batch, num_keys, size], arranged for the view; after `gather`
            [num_heads, batch, tiles, window, size].
        values: likewise.
        bias: the attention bias, if the only step has it for several groups of heads, or None.
        rows: the set's own queries, scaled: [num_heads, batch, places, size], after `gather`
            [num_heads, batch, tiles, rows, size]; or None.
    """

    view: reach_ops.View
    masks: tuple
    labels: labels_ops.Labels | None
    scale: float
    keys: tf.Tensor
    values: tf.Tensor
    bias: tf.Tensor | None = None
    rows: tf.Tensor | None = None

    def label_tensors(self):
        """The tensors of the labels that have a gradient: list."""
        return [] if self.labels is None else self.labels.tensors()

    def gather(self, step):
        """Returns this part with the keys and values gathered for a step."""
        keys, values = (self.view.gather(x, step, 2) for x in (self.keys, self.values))
        rows = None if self.rows is None else step.rows_of(self.rows, 2)
        return dataclasses.replace(self, keys=keys, values=values, rows=rows)

    def with_bias(self, step):
        """Returns this part with the attention bias of a step, so that it is computed once."""
        bias = masks_ops.attention_bias(self.masks, reach_ops.Pairs(self.view, step))
        return dataclasses.replace(self, bias=bias)

    def logits(self, queries, step):
        """float32 [num_heads, batch, tiles, rows, window]."""
        queries = self._queries(queries)
        logits, pairs = products.rows_by_keys(queries, self.keys), reach_ops.Pairs(self.view, step)
        bias = self.bias
        if bias is None:
            bias = masks_ops.attention_bias(self.masks, pairs)
        if self.labels is not None:
            bias = tf.zeros([1, 1, 1, 1]) if bias is None else bias
            return self.labels.logits(logits, queries, bias, pairs, self.scale)
        return tf.cast(logits, tf.float32) if bias is None else labels_ops.add_bias(logits, bias)

    def _queries(self, shared):
        return shared if self.rows is None else self.rows

    def mix(self, weights):
        """The weighted sums of values: [num_heads, batch, tiles, rows, size]."""
        return products.pairs_by_keys(weights, self.values)

    def values_product(self, gradients):
        """The gradient of the weights, from that of the outputs."""
        return products.rows_by_keys(gradients, self.values)

    def gradients(self, queries, output_gradients, weights, pair_gradients, step):
        """Gradients of the queries, of the step's keys and values, and of the labels' tensors."""
        queries = self._queries(queries)
        query_gradient = products.pairs_by_keys(pair_gradients, self.keys)
        pieces = [
            self.view.scatter(products.pairs_by_rows(pairs, rows, self.keys))
            for pairs, rows in ((pair_gradients, queries), (weights, output_gradients))
        ]
        if self.labels is None:
            return query_gradient, pieces, []
        pairs = reach_ops.Pairs(self.view, step)
        of_queries, of_labels = self.labels.gradients(pair_gradients, queries, pairs, self.scale)
        if of_queries is not None:
            query_gradient += of_queries
        return query_gradient, pieces, of_labels
