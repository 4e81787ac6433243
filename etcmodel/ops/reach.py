"""Attention patterns, as values without tensors.

A reach defines which pairs of a query and a key exist; masks (`masks.py`) may forbid some of these.
It also determines how the keys of a tile of queries are gathered, and so which pairs are computed.
"""

import dataclasses
import sys
from typing import Protocol

from etcmodel.ops import argument_checks, views
from etcmodel.ops.tiles import TILE_ROWS

__all__ = ["ALL", "OUTSIDE_LOGIT", "All", "Chunk", "Reach", "Window"]

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

    def sees(self, queries, keys):
        """Marks the pairs that exist.

        Args:
            queries: int32. Positions of queries.
            keys: int32. Positions of keys, which broadcast against those of the queries.
        Returns:
            bool of the broadcast shape, or None if all pairs exist.
        """

    def most_rows_together(self, tile_rows):
        """The most rows for which a single tile takes less work than several of `tile_rows`."""
        return 0

    def tile_rows(self, rows):
        """The number of rows in a tile, near the proposed `rows`, that suits the reach."""
        return rows

    def keys_per_row(self, tile_rows, num_keys):
        """The number of keys that are gathered for a tile of `tile_rows` rows."""
        return num_keys

    def view(self, tiles, num_keys):
        """The `views.View` of the keys for these tiles."""
        return views.SharedKeys(self, tiles, num_keys)


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
            return views.SharedKeys(self, tiles, num_keys)
        return views.WindowedKeys(self, tiles, num_keys, left=self.left, right=self.right)


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

    def sees(self, queries, keys):
        return (queries + self.shift) // self.size == (keys + self.shift) // self.size

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
            return views.SharedKeys(self, tiles, num_keys)
        return views.ChunkedKeys(self, tiles, num_keys)


def _check_alignment(reach, tiles, num_keys):
    """Raises ValueError if keys cannot be gathered by the position of the query."""
    if tiles.query_positions is not None:
        argument_checks.fail(f"`query_positions` need a reach over all keys. Received: {reach}")
    if isinstance(num_keys, int) and isinstance(tiles.num_rows, int) and num_keys != tiles.num_rows:
        argument_checks.fail(
            f"{reach} needs as many keys as queries. Received: {num_keys} keys, "
            f"{tiles.num_rows} queries"
        )
