"""Gathers overlapping windows of keys, and moves values between offsets and columns of a window.

A tile of `rows` queries has a window of `rows + extra` consecutive keys; the window of the next
tile starts `rows` keys later. A shear moves values from [query, offset] to
[query, column of the window]: row i shifts i columns to the right (the "skewing" of Huang et al.
2018).
"""

import dataclasses

import tensorflow as tf

from etcmodel.ops.shapes import at_least, get_shape_list, pad_axis


def windows(x, num_tiles, rows, extra, axis):
    """Overlapping windows along one axis.

    Args:
        x: tensor whose `axis` has `num_tiles * rows + extra` entries.
        num_tiles: int or scalar tensor.
        rows: int. Distance between windows.
        extra: int.
        axis: int, not negative.
    Returns:
        tensor with `axis` replaced by [num_tiles, rows + extra].
    """
    starts = tf.range(num_tiles) * rows
    return tf.gather(x, starts[:, tf.newaxis] + tf.range(rows + extra), axis=axis)


def overlap_add(x, rows, extra, least_rows=None):
    """The transpose of `windows`: sums the values of overlapping windows for the same entry.

    Args:
        x: float [..., num_tiles, rows + extra, size].
        rows: int or scalar tensor.
        extra: int.
        least_rows: int. A lower bound of `rows`; needed if `rows` is a tensor.
    Returns:
        float [..., num_tiles * rows + extra, size].
    """
    *outer, num_tiles, window, size = get_shape_list(x)
    if isinstance(rows, int):
        least_rows = rows
    parts = 1 - (-extra // least_rows)  # The greatest number of tiles that a window spans.
    x = pad_axis(x, len(outer) + 1, after=parts * rows - window)
    x = tf.reshape(x, [*outer, num_tiles, parts, rows, size])
    axis = len(outer)
    total = sum(
        pad_axis(part, axis, before=shift, after=parts - 1 - shift)
        for shift, part in enumerate(tf.unstack(x, parts, axis=axis + 1))
    )
    total = tf.reshape(total, [*outer, (num_tiles + parts - 1) * rows, size])
    return total[..., : num_tiles * rows + extra, :]


def shear(x, num_keys, first_column=0):
    """Shears offsets to columns: moves row i by i columns to the right.

    Args:
        x: [..., rows, width]. Values by offset, then zeros. No row's values may move beyond the
            last column to return, unless `first_column` is above 0.
        num_keys: int. Number of columns to return, from `first_column` on.
        first_column: int. Columns below 0 are zeros.
    Returns:
        [..., rows, num_keys]; zeros in columns that a row does not reach.
    """
    if isinstance(first_column, int) and first_column < 0:
        rest = shear(x, num_keys + first_column)
        return pad_axis(rest, len(x.shape) - 1, before=-first_column)
    *outer, rows, width = get_shape_list(x)
    row = first_column + num_keys
    x = pad_axis(x, len(outer) + 1, after=at_least(0, row + 1 - width))[..., : row + 1]
    flat = tf.reshape(x, [*outer, rows * (row + 1)])[..., : rows * row]
    return tf.reshape(flat, [*outer, rows, row])[..., first_column:]


def unshear(x, width, first_column=0):
    """The transpose of `shear`.

    Args:
        x: [..., rows, num_keys].
        width: int. Number of offsets to return.
        first_column: int.
    Returns:
        [..., rows, width].
    """
    if isinstance(first_column, int) and first_column < 0:
        return unshear(x[..., -first_column:], width)
    *outer, rows, num_keys = get_shape_list(x)
    row = first_column + num_keys
    x = pad_axis(x, len(outer) + 1, before=first_column)
    flat = pad_axis(tf.reshape(x, [*outer, rows * row]), len(outer), after=rows)
    offsets = tf.reshape(flat, [*outer, rows, row + 1])
    return pad_axis(offsets, len(outer) + 1, after=at_least(0, width - row - 1))[..., :width]


@dataclasses.dataclass(frozen=True)
class Band:
    """Maps offsets (key minus query, from -left to right) to the columns of a window of keys.

    Attributes:
        left: int.
        right: int.
        rows: int or scalar tensor. Number of queries.
        window: int or scalar tensor. Number of keys. If one of both is a tensor, they must be
            equal.
        own_column: int. Column of the key at offset 0 of the first query.
    """

    left: int
    right: int
    rows: object
    window: object
    own_column: int

    @property
    def width(self):
        """Columns for `to_columns`: `left + right + 1`, padded so that it needs no copy."""
        sheared = self._first_column + self._inner + 1 - self._before
        return at_least(self.left + self.right + 1, sheared)

    def to_columns(self, x):
        """Moves [..., rows, left + right + 1 or more] to [..., rows, window].

        Columns of `x` beyond the offsets must be zeros. Columns of the result that no offset
        reaches are zeros.
        """
        axis = len(x.shape) - 1
        x = pad_axis(x, axis, before=self._before)
        x = shear(x, self._inner, self._first_column)
        return pad_axis(x, axis, before=self._gap, after=self._gap_after)

    def from_columns(self, x):
        """The transpose of `to_columns`: [..., rows, window] to [..., rows, width]."""
        x = x[..., self._gap : _difference(self.window, self._gap_after)]
        x = unshear(x, self.width + self._before, self._first_column)
        return x[..., self._before :]

    @property
    def _gap(self):
        """Number of columns at the beginning that no query reaches."""
        return max(0, self.own_column - self.left)

    @property
    def _gap_after(self):
        """Number of columns at the end that no query reaches."""
        return max(0, -self._overflow)

    @property
    def _overflow(self):
        """Number of columns beyond the window that the last query reaches."""
        if isinstance(self.rows, int) and isinstance(self.window, int):
            return self.rows + self.own_column + self.right - self.window
        return self.own_column + self.right

    @property
    def _inner(self):
        return self.window - self._gap - self._gap_after

    @property
    def _before(self):
        """Number of zeros in front, so that what the shear wraps into the next row is cut off."""
        return max(0, self._overflow - max(0, self.left - self.own_column))

    @property
    def _first_column(self):
        return max(0, self.left - self.own_column) + self._before


def _difference(end, gap):
    """The end of a slice; None for the last entry."""
    return end - gap if gap else None
