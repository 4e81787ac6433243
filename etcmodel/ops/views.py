"""Gathers the keys of one set for the tiles of queries, and scatters gradients back.

Keys are [heads, batch, num_keys, size], gathered keys [heads, batch, tiles, window, size]. A window
consists of the keys that all rows of a tile share. If all tiles share the keys, `tiles` is 1.
"""

import dataclasses
from typing import Protocol

import tensorflow as tf

from etcmodel.ops import windows
from etcmodel.ops.shapes import get_shape_list, pad_axis

__all__ = ["ChunkedKeys", "Pairs", "SharedKeys", "View", "WindowedKeys"]


class View(Protocol):
    """The keys of each tile.

    Attributes:
        reach: `reach.Reach`.
        tiles: `tiles.Tiles` of the queries.
        num_keys: int or scalar tensor.
        window: int or scalar tensor. Number of keys of a tile.
        own_column: int or None. The column of the window with the key at the position of the tile's
            first row; that of row i is i columns later. None if it differs between tiles.
        stride: int. Positions from one key of a window to the next.
    """

    def arrange(self, x, axis=1, value=0):
        """Pads and orders values by key, along `axis`, for `gather`."""

    def gather(self, x, step, axis=1):
        """Gathers arranged values [..., keys, ...] for a step: [..., tiles, window, ...]."""

    def positions(self, step):
        """Positions of the gathered keys: int32 [tiles, window]."""

    def exists(self, step):
        """Marks the pairs of a step that exist: bool [tiles, rows, window], or None if all do."""

    def piece_spec(self, x):
        """`tf.TensorSpec` of `scatter`'s result for keys like `x`; None if steps are summed."""

    def scatter(self, x):
        """The transpose of `gather`: sums [heads, batch, tiles, window, size] by key."""

    def join(self, pieces):
        """[heads, batch, num_keys, size] from stacked results of `scatter`, or their sum."""


@dataclasses.dataclass(frozen=True)
class SharedKeys(View):
    """All tiles have all keys."""

    reach: object
    tiles: object
    num_keys: object
    stride = 1

    @property
    def window(self):
        return self.num_keys

    @property
    def own_column(self):
        return 0 if self.tiles.is_one and self.tiles.is_natural else None

    def arrange(self, x, axis=1, value=0):
        return x

    def gather(self, x, step, axis=1):
        return tf.expand_dims(x, axis)

    def positions(self, step):
        return tf.range(self.num_keys)[tf.newaxis]

    def exists(self, step):
        queries, keys = step.row_positions()[:, :, tf.newaxis], self.positions(step)
        return self.reach.sees(queries, keys[:, tf.newaxis])

    def piece_spec(self, x):
        return None

    def scatter(self, x):
        return tf.cast(x[:, :, 0], tf.float32)

    def join(self, pieces):
        return pieces


class _AlignedKeys(View):
    """Keys at the positions of the queries; a tile has those around it."""

    @property
    def stride(self):
        return self.tiles.order.stride

    def arrange(self, x, axis=1, value=0):
        x = self.tiles.arrange(x, axis, value)
        return pad_axis(x, axis, before=self.left, after=self.right, value=value)

    def exists(self, step):
        queries, keys = step.row_positions()[:, :, tf.newaxis], self.positions(step)
        keys = keys[:, tf.newaxis]
        is_key = (keys >= 0) & (keys < self.num_keys)
        return is_key & self.reach.sees(queries, keys)


@dataclasses.dataclass(frozen=True)
class WindowedKeys(_AlignedKeys):
    """A tile has the keys at its own places and some on both sides.

    Attributes:
        left: int. Keys before the first row's own.
        right: int. Keys after the last row's own.
    """

    reach: object
    tiles: object
    num_keys: object
    left: int
    right: int

    @property
    def window(self):
        return self.tiles.rows + self.left + self.right

    @property
    def own_column(self):
        return self.left

    def gather(self, x, step, axis=1):
        tiles, extra = self.tiles, self.left + self.right
        span = step.slice(x, axis, tiles.step_rows + extra)
        return windows.windows(span, tiles.tiles_per_step, tiles.rows, extra, axis)

    def positions(self, step):
        tiles = self.tiles
        starts = step.start + tiles.rows * tf.range(tiles.tiles_per_step) - self.left
        places = starts[:, tf.newaxis] + tf.range(tiles.rows + self.left + self.right)
        return tiles.order.positions(places)

    def piece_spec(self, x):
        rows = self.tiles.step_rows
        length = rows + self.left + self.right if isinstance(rows, int) else None
        return tf.TensorSpec([*x.shape[:2], length, x.shape[-1]], x.dtype)

    def scatter(self, x):
        return windows.overlap_add(x, self.tiles.rows, self.left + self.right)

    def join(self, pieces):
        tiles = self.tiles
        x = tf.transpose(pieces, [1, 2, 0, 3, 4])
        x = windows.overlap_add(x, tiles.step_rows, self.left + self.right, tiles.rows)
        return tiles.restore(x[:, :, self.left :], axis=2)


@dataclasses.dataclass(frozen=True)
class ChunkedKeys(_AlignedKeys):
    """A tile has the keys at its own places."""

    reach: object
    tiles: object
    num_keys: object
    left = right = own_column = 0

    @property
    def window(self):
        return self.tiles.rows

    def gather(self, x, step, axis=1):
        return step.rows_of(x, axis)

    def positions(self, step):
        return step.row_positions()

    def piece_spec(self, x):
        rows = self.tiles.step_rows
        length = rows if isinstance(rows, int) else None
        return tf.TensorSpec([*x.shape[:2], length, x.shape[-1]], x.dtype)

    def scatter(self, x):
        heads, batch, tiles, rows, size = get_shape_list(x)
        return tf.reshape(x, [heads, batch, tiles * rows, size])

    def join(self, pieces):
        steps, heads, batch, rows, size = get_shape_list(pieces)
        x = tf.transpose(pieces, [1, 2, 0, 3, 4])
        return self.tiles.restore(tf.reshape(x, [heads, batch, steps * rows, size]), axis=2)


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The pairs of one step's queries and gathered keys, for masks and labels.

    Attributes:
        view: `View`.
        step: `tiles.Step`.
    """

    view: View
    step: object

    @property
    def own_column(self):
        """See `View`."""
        return self.view.own_column

    def queries(self, x):
        """This step's values by query: arranged [batch, places, …] to [batch, tiles, rows, …]."""
        return self.step.rows_of(x)

    def keys(self, x):
        """This step's values by key: arranged [batch, keys, …] to [batch, tiles, window, …]."""
        return self.view.gather(x, self.step)

    def take(self, x):
        """Gathers the window's values from [batch, tiles, rows, num_keys]."""
        if isinstance(self.view, SharedKeys):
            return x
        places = tf.clip_by_value(self.view.positions(self.step), 0, self.view.num_keys - 1)
        by_tile = tf.gather(tf.transpose(x, [1, 0, 2, 3]), places, axis=3, batch_dims=1)
        return tf.transpose(by_tile, [1, 0, 2, 3])

    def put(self, x):
        """The transpose of `take`: sums [batch, tiles, rows, window] by key."""
        if isinstance(self.view, SharedKeys):
            return x
        batch, tiles, rows, window = get_shape_list(x)
        places = tf.clip_by_value(self.view.positions(self.step), 0, self.view.num_keys - 1)
        tile = tf.repeat(tf.range(tiles)[:, tf.newaxis], window, axis=1)
        by_key = tf.scatter_nd(
            tf.stack([tile, places], axis=-1),
            tf.transpose(x, [1, 3, 0, 2]),
            [tiles, self.view.num_keys, batch, rows],
        )
        return tf.transpose(by_key, [2, 0, 3, 1])

    def query_positions(self):
        """Positions of the queries: int32 [tiles, rows, 1]."""
        return self.step.row_positions()[:, :, tf.newaxis]

    def key_positions(self):
        """Positions of the keys: int32 [tiles, 1, window]; `tiles` is 1 if all share the keys."""
        return self.view.positions(self.step)[:, tf.newaxis]
