"""The rows of a batch one after the other in one row, without the padding at their ends.

What is computed token by token, and attention within windows, then costs as much as there are
tokens; attention to all tokens runs row by row.
"""

import dataclasses

import tensorflow as tf

from etcmodel.ops import blockwise
from etcmodel.ops import dropout as dropout_ops
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.masks import KeyMask, SegmentMask
from etcmodel.ops.shapes import get_shape_list


@dataclasses.dataclass(frozen=True)
class PackedRows:
    """Which places of a batch are packed: in each row those from the first to the last token.

    Masked places between these are packed, too, since windows go by place.

    Attributes:
        is_packed: bool [batch, length].
        places: int32 [number]. Of the packed entries among the batch's `batch * length`.
        row_ids: int32 [1, number]. The rows that they are from.
        starts: int32 [batch + 1]. Where each row begins, and the number.
    """

    is_packed: tf.Tensor
    places: tf.Tensor
    row_ids: tf.Tensor
    starts: tf.Tensor

    def pack(self, x):
        """[batch or 1, length, ...] to [1, number, ...]."""
        rows, length, *outer = get_shape_list(x)
        number = rows * length
        # A single row stands for all.
        places = self.places % tf.maximum(number, 1)
        return tf.gather(tf.reshape(x, [number, *outer]), places)[tf.newaxis]

    def unpack(self, x):
        """The inverse of `pack`; 0 elsewhere."""
        batch, length = get_shape_list(self.is_packed)
        outer = get_shape_list(x)[2:]
        spread = tf.scatter_nd(self.places[:, tf.newaxis], x[0], [batch * length, *outer])
        return tf.reshape(spread, [batch, length, *outer])

    def mask(self, token_mask):
        """Lets the entries attend to the tokens of their own row: a `masks.Mask`.

        Args:
            token_mask: bool [1, number].
        """
        return SegmentMask(self.row_ids, tf.where(token_mask, self.row_ids, -1))

    def attend_to_all(self, queries, keys, values, token_mask, dropout_rate=0.0):
        """Attends from each entry to all tokens of its row, at the cost of the rows' lengths.

        Args:
            queries, keys, values: float [1, number, num_heads, size_per_head].
            token_mask: bool [1, number].
            dropout_rate: float.
        Returns:
            float [1, number, num_heads, size_per_head].
        """
        num_rows = get_shape_list(self.is_packed)[0]
        seed = dropout_ops.new_seed() if dropout_rate else None

        def attended(row):
            part = slice(self.starts[row], self.starts[row + 1])
            q, k, v, mask = (x[:, part] for x in (queries, keys, values, token_mask))
            key_sets = [KeySet(k, v, masks=(KeyMask(mask),))]
            if seed is None:
                return blockwise.attend(q, key_sets)[0]
            # Else all rows of a graph's loop would drop the same.
            of_row = tf.random.experimental.stateless_fold_in(seed, row)
            with dropout_ops.seed_scope(of_row):
                return blockwise.attend(q, key_sets, dropout_rate=dropout_rate)[0]

        array = tf.TensorArray(
            queries.dtype, num_rows + 1, infer_shape=False, element_shape=[None, *values.shape[2:]]
        )
        array = array.write(num_rows, values[0, :0])  # So that there is one of an empty batch.
        _, array = tf.while_loop(
            lambda row, _: row < num_rows,
            lambda row, array: (row + 1, array.write(row, attended(row))),
            [tf.constant(0), array],
        )
        return array.concat()[tf.newaxis]


def is_packed(token_mask):
    """Marks what `packed_rows` packs, given its mask: bool [batch, length].

    >>> from etcmodel.ops import packing
    >>> packing.is_packed(tf.constant([[False, True, False, True, False]])).numpy().astype(int)
    array([[0, 1, 1, 1, 0]])
    """
    numbers = tf.cast(token_mask, tf.int32)
    before, behind = tf.cumsum(numbers, axis=1), tf.cumsum(numbers, axis=1, reverse=True)
    first = tf.equal(tf.range(tf.shape(token_mask)[1]), 0)
    return ((before > 0) & (behind > 0)) | (first & tf.equal(before[:, -1:], 0))


def packed_rows(token_mask):
    """Returns the `PackedRows` of a mask, bool [batch, length]; of a row without tokens one place.

    >>> from etcmodel.ops import packing
    >>> rows = packing.packed_rows(tf.constant([[True, True, False], [False, True, False]]))
    >>> rows.pack(tf.constant([[1, 2, 0], [0, 3, 0]])).numpy()
    array([[1, 2, 3]], dtype=int32)
    """
    marks = is_packed(token_mask)
    row_ids, _ = tf.unstack(tf.where(marks), axis=1)
    ends = tf.cumsum(tf.reduce_sum(tf.cast(marks, tf.int32), axis=1))
    return PackedRows(
        marks,
        tf.cast(tf.where(tf.reshape(marks, [-1]))[:, 0], tf.int32),
        tf.cast(row_ids, tf.int32)[tf.newaxis],
        tf.pad(ends, [[1, 0]]),
    )
