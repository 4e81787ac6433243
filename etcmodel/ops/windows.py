"""Blocks of queries, the windows of keys that they see, and what both say of each other.

A block of `block_len` queries sees a window of `block_len + 2 * margin` keys: query i of the block
has its own key at column `margin + i`. What is known by offset, [query, 2 * radius + 1], is brought
to the columns of the window by a shear: row i moves i columns to the right.
"""

import tensorflow as tf

from etcmodel import tensor_utils

__all__ = ["not_negative", "overlap_add", "pad_axis", "shear", "unshear", "windows"]


def pad_axis(x, axis, before=0, after=0, value=0):
    """Pads one axis; `before` and `after` may be tensors."""
    if isinstance(before, int) and isinstance(after, int) and not (before or after):
        return x
    paddings = [[0, 0]] * axis + [[before, after]] + [[0, 0]] * (len(x.shape) - axis - 1)
    return tf.pad(x, paddings, constant_values=value)


def windows(x, num_blocks, block_len, margin, axis):
    """Overlapping windows along one axis.

    Args:
        x: tensor whose `axis` has `num_blocks * block_len + 2 * margin` entries.
        num_blocks: int or scalar tensor.
        block_len: int. Distance between windows.
        margin: int.
        axis: int, not negative.
    Returns:
        tensor with `axis` replaced by [num_blocks, block_len + 2 * margin].
    """
    starts = tf.range(num_blocks) * block_len
    return tf.gather(x, starts[:, tf.newaxis] + tf.range(block_len + 2 * margin), axis=axis)


def overlap_add(x, block_len, margin, least_block_len=None):
    """The transpose of `windows`: adds what the windows say of the same entry.

    Args:
        x: float [..., num_blocks, block_len + 2 * margin, size].
        block_len: int or scalar tensor.
        margin: int.
        least_block_len: int that `block_len` is not below; needed if that is a tensor.
    Returns:
        float [..., num_blocks * block_len + 2 * margin, size].
    """
    *outer, num_blocks, window, size = tensor_utils.get_shape_list(x)
    if isinstance(block_len, int):
        least_block_len = block_len
    parts = 1 - (-2 * margin // least_block_len)  # Windows are no longer than so many blocks.
    x = pad_axis(x, len(outer) + 1, after=parts * block_len - window)
    x = tf.reshape(x, [*outer, num_blocks, parts, block_len, size])
    axis = len(outer)
    total = sum(
        pad_axis(part, axis, before=shift, after=parts - 1 - shift)
        for shift, part in enumerate(tf.unstack(x, parts, axis=axis + 1))
    )
    total = tf.reshape(total, [*outer, (num_blocks + parts - 1) * block_len, size])
    return total[..., : num_blocks * block_len + 2 * margin, :]


def shear(x, num_keys, first_column=0):
    """From offsets to columns: moves row i by i columns to the right.

    Args:
        x: [..., block_len, width], width at least 2 * radius + 1 and the rest zeros. No row may
            reach beyond the last column to return, unless `first_column` is above 0.
        num_keys: int. Columns to return, from `first_column` on.
        first_column: int; columns below 0 are zeros.
    Returns:
        [..., block_len, num_keys]; zeros where no row reaches.
    """
    if isinstance(first_column, int) and first_column < 0:
        rest = shear(x, num_keys + first_column)
        return pad_axis(rest, len(x.shape) - 1, before=-first_column)
    *outer, block_len, width = tensor_utils.get_shape_list(x)
    row = first_column + num_keys
    x = pad_axis(x, len(outer) + 1, after=not_negative(row + 1 - width))[..., : row + 1]
    flat = tf.reshape(x, [*outer, block_len * (row + 1)])[..., : block_len * row]
    return tf.reshape(flat, [*outer, block_len, row])[..., first_column:]


def unshear(x, width, first_column=0):
    """The transpose of `shear`.

    Args:
        x: [..., block_len, num_keys].
        width: int. Offsets to return.
        first_column: int.
    Returns:
        [..., block_len, width].
    """
    if isinstance(first_column, int) and first_column < 0:
        return unshear(x[..., -first_column:], width)
    *outer, block_len, num_keys = tensor_utils.get_shape_list(x)
    row = first_column + num_keys
    x = pad_axis(x, len(outer) + 1, before=first_column)
    flat = pad_axis(tf.reshape(x, [*outer, block_len * row]), len(outer), after=block_len)
    rows = tf.reshape(flat, [*outer, block_len, row + 1])
    return pad_axis(rows, len(outer) + 1, after=not_negative(width - row - 1))[..., :width]


def not_negative(number):
    """The number, an int or scalar tensor, or 0 if it is below."""
    return max(0, number) if isinstance(number, int) else tf.maximum(0, number)
