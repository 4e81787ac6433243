"""Attention patterns, as values without tensors.

A reach defines which pairs of a query and a key exist; masks (`masks.py`) may forbid some of these.
It also determines how the keys of a tile of queries are gathered, and so which pairs are computed.
"""

import abc
import dataclasses
import sys
from typing import Protocol

import tensorflow as tf

from etcmodel.ops import argument_checks, windows
from etcmodel.ops.shapes import get_shape_list, pad_axis
from etcmodel.ops.tiles import TILE_ROWS

__all__ = [
    "ALL",
    "OUTSIDE_LOGIT",
    "All",
    "Chunk",
    "ChunkedKeys",
    "Pairs",
    "Reach",
    "SharedKeys",
    "View",
    "Window",
    "WindowedKeys",
]

# Gathers the keys of one set for the tiles of queries, and scatters gradients back.
#
# Keys are [heads, batch, num_keys, size], gathered keys [heads, batch, tiles, window, size]. A
# window consists of the keys that all rows of a tile share. If all tiles share the keys, `tiles` is
# 1.


class View(Protocol):
    """The keys of each tile.

    Attributes:
        reach: `Reach`.
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
        """`tf.TensorSpec` of `scatter`'s result; None if steps are summed.

        Args:
            x: keys or values as `arrange` returns them, [heads, batch, num_keys, size].
        """

    def scatter(self, x):
        """The transpose of `gather`: sums [heads, batch, tiles, window, size] by key."""

    def join(self, pieces):
        """[heads, batch, num_keys, size] from stacked results of `scatter`, or their sum."""


def _seen(reach, queries, keys):
    """The result of `Reach.sees`, which is checked."""
    seen = reach.sees(queries, keys)
    if seen is not None and not isinstance(seen, bool):
        argument_checks.check_returned(f"{type(reach).__name__}.sees", seen, tf.bool)
    return seen


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
        return _seen(self.reach, queries, keys[:, tf.newaxis])

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
        return is_key & _seen(self.reach, queries, keys)


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


# The patterns.


# Added to the logits of pairs that do not exist, so that even a query without allowed keys does not
# attend to them.
OUTSIDE_LOGIT = -1e9
# Tiles grow with the window, up to this many rows, so that fewer keys are gathered several times.
_MOST_TILE_ROWS = 256


class Reach(Protocol):
    """The keys that each query attends to; a subclass must define only `sees`.

    Attributes:
        shift: int. Empty places in front of the rows.
        dilation: int. See `tiles.RowOrder.stride`.
        wanted_rows: int or None. The preferred number of queries in a tile; None: any number.
        farthest_before, farthest_after: int. The greatest distance, in positions, from a query to a
            key within reach before and after it.
        outside: float. Added to the logits of pairs that do not exist.

    >>> from etcmodel.ops import reach
    >>> reach.Window(left=84, right=42).farthest_before, reach.Chunk(512).farthest_after
    (84, 511)
    """

    shift: int = 0
    dilation: int = 1
    wanted_rows: int | None = None
    farthest_before: int = sys.maxsize
    farthest_after: int = sys.maxsize
    outside: float = OUTSIDE_LOGIT

    @abc.abstractmethod
    def sees(self, queries, keys):
        """Marks the pairs that exist.

        Args:
            queries: int32. Positions of queries.
            keys: int32. Positions of keys, which broadcast against those of the queries.
        Returns:
            bool of the broadcast shape, or None if all pairs exist.
        """

    def row_order(self):
        """(shift, dilation) of the rows that the view needs; None: any suits it."""
        return self.shift or None, self.dilation if self.dilation > 1 else None

    def most_rows_together(self, tile_rows):
        """The most rows for which a single tile takes less work than several of `tile_rows`."""
        return 0

    def tile_rows(self, rows):
        """The number of rows in a tile, near the proposed `rows`, that suits the reach.

        That of one row must divide all others.
        """
        return rows

    def keys_per_row(self, tile_rows, num_keys):
        """The number of keys that are gathered for a tile of `tile_rows` rows."""
        return num_keys

    def view(self, tiles, num_keys):
        """The `View` of the keys for these tiles."""
        return SharedKeys(self, tiles, num_keys)


@dataclasses.dataclass(frozen=True)
class All(Reach):
    """Each query attends to all keys; there may be more or fewer keys than queries."""

    def sees(self, queries, keys):
        return None


ALL = All()


@dataclasses.dataclass(frozen=True)
class Window(Reach):
    """Sliding window: a query attends to keys around it (Beltagy et al. 2020, section 3.1).

    Attributes:
        left: int, at least 0. Keys attended to before the query's own.
        right: int, at least 0. Keys attended to after it.
        dilation: int, at least 1. Distance between neighboring keys that are attended to.

    >>> from etcmodel.ops import blockwise, key_sets, reach
    >>> queries = keys = tf.zeros([1, 4, 1, 8])
    >>> window = key_sets.KeySet(keys, tf.eye(4)[None, :, None], reach.Window(left=1, right=0))
    >>> blockwise.attend(queries, [window])[0, :, 0].numpy()
    array([[1. , 0. , 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0.5, 0.5]], dtype=float32)
    """

    left: int
    right: int
    dilation: int = 1

    def __post_init__(self):
        if self.left < 0 or self.right < 0 or self.dilation < 1:
            raise ValueError(
                "`left` and `right` must not be negative, `dilation` must be at least 1. "
                f"Received: {self}"
            )

    def sees(self, queries, keys):
        offsets = keys - queries
        is_near = (offsets >= -self.left * self.dilation) & (offsets <= self.right * self.dilation)
        return is_near & (offsets % self.dilation == 0) if self.dilation > 1 else is_near

    def row_order(self):
        return None, self.dilation

    @property
    def farthest_before(self):
        return self.left * self.dilation

    @property
    def farthest_after(self):
        return self.right * self.dilation

    @property
    def wanted_rows(self):
        wanted = (self.left + self.right) // 4 // TILE_ROWS * TILE_ROWS
        return min(max(wanted, TILE_ROWS), _MOST_TILE_ROWS)

    def most_rows_together(self, tile_rows):
        return tile_rows + self.left + self.right

    def keys_per_row(self, tile_rows, num_keys):
        return tile_rows + self.left + self.right

    def view(self, tiles, num_keys):
        _check_alignment(self, tiles, num_keys)
        if tiles.is_one:
            farthest = tiles.num_rows - 1 if isinstance(tiles.num_rows, int) else sys.maxsize
            has_all = type(self) is Window and min(self.left, self.right) >= farthest
            has_all = has_all and self.dilation == 1
            return SharedKeys(ALL if has_all else self, tiles, num_keys)
        return WindowedKeys(self, tiles, num_keys, left=self.left, right=self.right)


@dataclasses.dataclass(frozen=True)
class Chunk(Reach):
    """A query attends to the keys of its own chunk of the sequence; chunks do not overlap.

    Attributes:
        size: int, at least 1. Tokens per chunk.
        shift: int, at least 0 and below `size`. The borders of the chunks are shifted this many
            tokens to the left, so that the first chunk has `size - shift` (Phang et al. 2022,
            section 3.2).

    >>> from etcmodel.ops import blockwise, key_sets, reach
    >>> queries = keys = tf.zeros([1, 4, 1, 8])
    >>> chunks = key_sets.KeySet(keys, tf.eye(4)[None, :, None], reach.Chunk(2))
    >>> blockwise.attend(queries, [chunks])[0, :, 0].numpy()
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]], dtype=float32)
    """

    size: int
    shift: int = 0

    def __post_init__(self):
        if self.size < 1 or not 0 <= self.shift < self.size:
            raise ValueError(
                f"`size` must be at least 1, and `shift` at least 0 and below it. Received: {self}"
            )

    def numbers(self, positions):
        """The numbers of the chunks of positions, from 0."""
        return (positions + self.shift) // self.size

    def sees(self, queries, keys):
        return self.numbers(queries) == self.numbers(keys)

    def row_order(self):
        return self.shift, 1

    @property
    def farthest_before(self):
        return self.size - 1

    @property
    def farthest_after(self):
        return self.size - 1

    @property
    def wanted_rows(self):
        return self.tile_rows(TILE_ROWS)

    def most_rows_together(self, tile_rows):
        return tile_rows

    def tile_rows(self, rows):
        return max(1, rows // self.size) * self.size

    def keys_per_row(self, tile_rows, num_keys):
        return self.tile_rows(tile_rows)

    def view(self, tiles, num_keys):
        _check_alignment(self, tiles, num_keys)
        if tiles.is_one:
            return SharedKeys(self, tiles, num_keys)
        return ChunkedKeys(self, tiles, num_keys)


def _check_alignment(reach, tiles, num_keys):
    """Raises ValueError if keys cannot be gathered by the position of the query."""
    if tiles.query_positions is not None:
        argument_checks.fail(f"`query_positions` need a reach over all keys. Received: {reach}")
    if isinstance(num_keys, int) and isinstance(tiles.num_rows, int) and num_keys != tiles.num_rows:
        argument_checks.fail(
            f"{reach} needs as many keys as queries. Received: {num_keys} keys, "
            f"{tiles.num_rows} queries"
        )
