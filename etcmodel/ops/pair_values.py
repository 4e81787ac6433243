"""Values given for each pair of a query and a key: label ids, masks or biases."""

import dataclasses
from typing import Protocol

import tensorflow as tf

from etcmodel.ops import argument_checks
from etcmodel.ops.shapes import get_shape_list, pad_axis
from etcmodel.ops.windows import Band


class PairValues(Protocol):
    """The interface of numbers for each pair."""

    def prepare(self, view):
        """Returns the same values for a `reach.View`: tensors arranged as its rows."""

    def of(self, pairs):
        """The values of a step's `reach.Pairs`: [batch or 1, tiles, rows, window]."""

    def collect(self, x, pairs):
        """The transpose of `of`: sums [batch or 1, tiles, rows, window] by entry of the values."""


@dataclasses.dataclass(frozen=True)
class Dense:
    """Values of all pairs.

    Attributes:
        values: [batch or 1, num_rows, num_keys].

    >>> from etcmodel.ops import pair_values
    >>> pair_values.Dense(tf.zeros([1, 3, 6])).values.shape
    TensorShape([1, 3, 6])
    """

    values: tf.Tensor

    def prepare(self, view):
        return dataclasses.replace(self, values=view.tiles.arrange(self.values))

    def of(self, pairs):
        return pairs.take(pairs.queries(self.values))

    def collect(self, x, pairs):
        return pairs.put(x)


@dataclasses.dataclass(frozen=True)
class ByOffset:
    """Values of the pairs of a window, by offset.

    Attributes:
        values: [batch or 1, num_rows, left + right + 1]. Column `left` is the key at the query's
            position; with a dilation of n the next column is the key n positions later.
        left: int.
    """

    values: tf.Tensor
    left: int

    def prepare(self, view):
        return dataclasses.replace(self, values=view.tiles.arrange(self.values))

    def of(self, pairs):
        """See the base class; 0 for pairs whose offset has no column."""
        band, spacing = self._band(pairs)
        return band.to_columns(_spread(pairs.queries(self.values), spacing))

    def collect(self, x, pairs):
        band, spacing = self._band(pairs)
        return band.from_columns(x)[..., : band.left + band.right + 1 : spacing]

    def _band(self, pairs):
        """(`windows.Band` of the offsets, distance of two offsets in columns of the window)."""
        if pairs.own_column is None:
            argument_checks.fail(
                "Values by offset need a reach whose keys have the positions of the queries. "
                f"Received: {pairs.view.reach}"
            )
        view = pairs.view
        spacing = view.reach.dilation // view.stride  # Distance of two offsets, in columns.
        left, right = self.left, self.values.shape[-1] - 1 - self.left
        rows = view.tiles.rows
        band = Band(left * spacing, right * spacing, rows, view.window, view.own_column)
        return band, spacing


def _spread(x, spacing):
    """Puts zeros between the entries of the last axis."""
    if spacing == 1:
        return x
    *outer, length = get_shape_list(x)
    x = pad_axis(x[..., tf.newaxis], len(outer) + 1, after=spacing - 1)
    return tf.reshape(x, [*outer, length * spacing])[..., : (length - 1) * spacing + 1]
