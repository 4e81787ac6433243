"""The order in which the rows of an attention are computed."""

import dataclasses

import tensorflow as tf

from etcmodel.ops.shapes import ceil_div, get_shape_list, pad_axis

__all__ = ["RowOrder"]


@dataclasses.dataclass(frozen=True)
class RowOrder:
    """The order in which rows are computed.

    A row's position is its index in the input; its place is its index in the order of computation.
    They are equal, or shifted by empty places, or the rows are grouped by position modulo `stride`.

    Attributes:
        num_rows: int or scalar tensor.
        before: int. Empty places in front.
        stride: int. If above 1, rows with the same position modulo `stride` are adjacent, each
            group is padded to the same length, and `before` is 0.
    """

    num_rows: object
    before: int = 0
    stride: int = 1

    @property
    def num_places(self):
        return self.before + ceil_div(self.num_rows, self.stride) * self.stride

    def arrange(self, x, axis=1, value=0):
        """Moves rows along `axis` from positions to places; empty places get `value`."""
        if self.stride == 1:
            return pad_axis(x, axis, before=self.before, value=value)
        x = pad_axis(x, axis, after=self.num_places - self.num_rows, value=value)
        return self._swap(x, axis, [self.num_places // self.stride, self.stride])

    def restore(self, x, axis=1):
        """The inverse of `arrange`; `axis` may have further places at the end."""
        if self.stride == 1:
            return _slice(x, axis, self.before, self.num_rows)
        x = _slice(x, axis, 0, self.num_places)
        x = self._swap(x, axis, [self.stride, self.num_places // self.stride])
        return _slice(x, axis, 0, self.num_rows)

    def positions(self, places):
        """Positions of places, int32; below 0 or at least `num_rows` for empty places."""
        if self.stride == 1:
            return places - self.before
        class_len = self.num_places // self.stride
        positions = places % class_len * self.stride + places // class_len
        return tf.where((places >= 0) & (places < self.num_places), positions, -1)

    def _swap(self, x, axis, sizes):
        shape = get_shape_list(x)
        x = tf.reshape(x, [*shape[:axis], *sizes, *shape[axis + 1 :]])
        axes = list(range(len(x.shape)))
        axes[axis], axes[axis + 1] = axes[axis + 1], axes[axis]
        sizes = [*shape[:axis], sizes[0] * sizes[1], *shape[axis + 1 :]]
        return tf.reshape(tf.transpose(x, axes), sizes)


def _slice(x, axis, start, length):
    if isinstance(start, int) and start == 0 and x.shape[axis] == length:
        return x
    begin, size = [0] * len(x.shape), get_shape_list(x)
    begin[axis], size[axis] = start, length
    return tf.slice(x, begin, size)
