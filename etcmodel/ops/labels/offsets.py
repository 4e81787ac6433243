"""Labels of offsets: key position minus query position."""

import dataclasses

import tensorflow as tf

from etcmodel.ops import offsets as offsets_ops
from etcmodel.ops import pair_values
from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.labels.ids import IdLabels
from etcmodel.ops.labels.tables import LabelLogits, LabelTables, TableLabels
from etcmodel.ops.shapes import at_least, ceil_div, get_shape_list, pad_axis
from etcmodel.ops.windows import Band

__all__ = ["OffsetLabels"]


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
