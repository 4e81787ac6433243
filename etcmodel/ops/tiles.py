"""Divides the queries of an attention: rows into tiles, tiles into steps.

The rows of a tile share the keys that are gathered for it. Only the logits of one step exist at a
time, in the forward and in the backward pass, which bounds memory. Sizes are int or scalar tensors.
"""

import dataclasses
import math

import tensorflow as tf

from etcmodel.ops.shapes import at_least, at_most, ceil_div, get_shape_list, pad_axis, slice_axis


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
        num_places: int or scalar tensor. Computed once: a graph would repeat it for each use.
    """

    num_rows: object
    before: int = 0
    stride: int = 1
    num_places: object = dataclasses.field(init=False)

    def __post_init__(self):
        places = self.num_rows
        if self.stride > 1:
            places = ceil_div(places, self.stride) * self.stride
        object.__setattr__(self, "num_places", places + self.before if self.before else places)

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
    return slice_axis(x, axis, start, length)


# Rows of a tile: long enough for fast matrix products.
TILE_ROWS = 64
# Logits of a step: 16 MB in float32, small enough for passes over them to stay near the caches,
# while the matrix products are still large.
DEFAULT_LOGITS = 1 << 22
_LEAST_TILE_ROWS = 8
# Queries of one head that are multiplied with all keys at a time, as far as there are so many: with
# fewer, keys are read for too little work.
_PRODUCT_ROWS = 512


@dataclasses.dataclass(frozen=True)
class Tiling:
    """The sizes of the parts of an attention's computation, which decide its speed and memory.

    Outputs do not depend on it, except for rounding and for which probabilities dropout drops.

    Attributes:
        rows: int, 'all' or None. The greatest number of queries in a tile; a reach may need more.
            None: as suits the reaches; all rows if that takes the least work.
        logits: int. The number of logits, over batch and heads, that exist at a time (at least
            those of one tile).
    """

    rows: int | str | None = None
    logits: int = DEFAULT_LOGITS

    def __post_init__(self):
        is_known = self.rows in (None, "all") or (isinstance(self.rows, int) and self.rows > 0)
        if not is_known or self.logits < 1:
            raise ValueError(
                "`rows` must be a positive number, 'all' or None, and `logits` positive. "
                f"Received: {self}"
            )


_current = Tiling()


def current_tiling():
    """Returns the `Tiling` used if none is given."""
    return _current


def set_tiling(tiling):
    """Sets the tiling used if none is given, for attention traced from now on in this process.

    Args:
        tiling: `Tiling`.
    """
    global _current
    _current = tiling


@dataclasses.dataclass(frozen=True)
class Tiles:
    """The rows of an attention, in steps of tiles.

    Attributes:
        order: `RowOrder`.
        rows: Number of queries in a tile.
        tiles_per_step: Number of tiles in a step.
        num_steps: Number of steps.
        query_positions: int32 [num_rows] or None. Positions of the queries, if not 0, 1, …
        step_rows, num_places: Number of places in a step and in all, computed once.
    """

    order: RowOrder
    rows: object
    tiles_per_step: object
    num_steps: object
    query_positions: tf.Tensor | None = None
    step_rows: object = dataclasses.field(init=False)
    num_places: object = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "step_rows", self.rows * self.tiles_per_step)
        object.__setattr__(self, "num_places", self.step_rows * self.num_steps)

    @property
    def num_rows(self):
        return self.order.num_rows

    @property
    def is_one(self):
        """Whether one tile has all rows, if that is known when tracing."""
        return all(isinstance(n, int) and n == 1 for n in (self.tiles_per_step, self.num_steps))

    @property
    def is_natural(self):
        """Whether places are equal to positions."""
        return self.query_positions is None and self.order.before == 0 and self.order.stride == 1

    def arrange(self, x, axis=1, value=0):
        """Moves values by row, along `axis`, from positions to places; None stays None."""
        if x is None:
            return None
        x = self.order.arrange(x, axis, value)
        return pad_axis(x, axis, after=self.num_places - self.order.num_places, value=value)

    def restore(self, x, axis=1):
        """The inverse of `arrange`."""
        return self.order.restore(x, axis)

    def step(self, index):
        """Returns the `Step` of this index, an int (of the only step) or scalar tensor."""
        return Step(self, index)


@dataclasses.dataclass(frozen=True)
class Step:
    """One step: the tiles that are computed at a time."""

    tiles: Tiles
    index: object

    @property
    def start(self):
        """The first place."""
        return self.index * self.tiles.step_rows

    def slice(self, x, axis, length):
        """`length` entries of `x` along `axis`, from the first place on."""
        if isinstance(self.index, int):  # The only step.
            return x
        return slice_axis(x, axis, self.start, length)

    def rows_of(self, x, axis=1):
        """This step's rows: [batch, places, ...] to [batch, tiles, rows, ...]."""
        tiles = self.tiles
        part = self.slice(x, axis, tiles.step_rows)
        shape = get_shape_list(part)
        return tf.reshape(
            part, [*shape[:axis], tiles.tiles_per_step, tiles.rows, *shape[axis + 1 :]]
        )

    def row_positions(self):
        """Positions of this step's rows: int32 [tiles, rows]."""
        tiles = self.tiles
        if tiles.query_positions is None:
            positions = tiles.order.positions(self.start + tf.range(tiles.step_rows))
            return tf.reshape(positions, [tiles.tiles_per_step, tiles.rows])
        arranged = tiles.arrange(tiles.query_positions, axis=0, value=-1)
        return self.rows_of(arranged, axis=0)


def heads_together(num_heads, batch, num_rows, num_keys, tiling):
    """The heads of a step in which each query has all keys, so that their products are large.

    Args:
        num_heads: int.
        batch, num_rows, num_keys: int or scalar tensor. `num_keys` of all key sets.
        tiling: `Tiling`.
    Returns:
        A divisor of `num_heads`: int or scalar tensor.
    """
    if tiling.rows is not None:
        return num_heads
    of_one = batch * at_most(num_rows, _PRODUCT_ROWS) * num_keys
    most = at_most(at_least(1, tiling.logits // at_least(1, of_one)), num_heads)
    divisors = [n for n in range(1, num_heads + 1) if num_heads % n == 0]
    greatest = [0, *(max(x for x in divisors if x <= n) for n in range(1, num_heads + 1))]
    return greatest[most] if isinstance(most, int) else tf.gather(greatest, most)


def make_tiles(num_rows, rows_of_logits, reaches, num_keys, tiling, query_positions=None):
    """Divides the rows so that each reach gets the tiles it needs.

    Args:
        num_rows: int or scalar tensor.
        rows_of_logits: int or scalar tensor. Batch size times number of heads.
        reaches: list of `reach.Reach`, of all key sets.
        num_keys: list of int or scalar tensor, of the same key sets.
        tiling: `Tiling`.
        query_positions: see `Tiles`.
    Raises:
        ValueError: if the reaches need rows in different orders.
    """
    orders = [reach.row_order() for reach in reaches]
    order = RowOrder(
        num_rows,
        before=_common("shift", 0, [shift for shift, _ in orders]),
        stride=_common("dilation", 1, [dilation for _, dilation in orders]),
    )
    wanted = _wanted_rows(reaches)
    longest = max(wanted, default=TILE_ROWS)
    is_short = isinstance(num_rows, int) and num_rows <= most_rows_together(reaches, tiling)
    if is_short or tiling.rows == "all":
        return Tiles(RowOrder(num_rows), num_rows, 1, 1, query_positions)
    if tiling.rows is not None:
        longest = tiling.rows
    # Guessed only if all else is known, and windows are most of the work.
    may_guess = bool(wanted) and isinstance(num_rows, int) and isinstance(rows_of_logits, int)
    logits_per_row = rows_of_logits * _keys_per_row(longest, reaches, num_keys, may_guess)
    if not wanted:
        rows = tiling.logits // at_least(1, logits_per_row)
        longest = at_most(at_least(_LEAST_TILE_ROWS, rows), longest)
    num_tiles = at_least(1, ceil_div(order.num_places, longest))
    rows = longest
    # Tiles of equal length need the least padding; windows need a static number of rows.
    if isinstance(num_rows, int) or not wanted:
        rows = at_least(1, ceil_div(order.num_places, num_tiles))
    for reach in reaches:
        rows = reach.tile_rows(rows)
    # What suits all of them, such as whole chunks of each size.
    unit = math.lcm(*(reach.tile_rows(1) for reach in reaches))
    rows = rows if unit == 1 else max(1, rows // unit) * unit
    num_tiles = at_least(1, ceil_div(order.num_places, rows))
    num_steps = ceil_div(num_tiles * rows * logits_per_row, tiling.logits)
    num_steps = at_most(at_least(1, num_steps), num_tiles)
    tiles_per_step = ceil_div(num_tiles, num_steps)
    if isinstance(num_tiles, int) and num_tiles == 1:
        order = RowOrder(
            num_rows
        )  # The order does not matter: in one tile all rows have all gathered keys.
    return Tiles(order, rows, tiles_per_step, ceil_div(num_tiles, tiles_per_step), query_positions)


def most_rows_together(reaches, tiling):
    """The most rows for which `make_tiles` makes a single tile, if their number is known."""
    if tiling.rows is not None:
        return 0
    longest = max(_wanted_rows(reaches), default=TILE_ROWS)
    return max(reach.most_rows_together(longest) for reach in reaches)


def _wanted_rows(reaches):
    return [rows for reach in reaches if (rows := reach.wanted_rows) is not None]


def _keys_per_row(tile_rows, reaches, num_keys, may_guess):
    """The number of keys that are gathered for a row, of all sets.

    If it may be guessed, a number known only when a graph runs counts as much as the known ones:
    known numbers of steps give known shapes, which let passes over the logits be compiled.
    """
    numbers = [
        reach.keys_per_row(tile_rows, keys) for reach, keys in zip(reaches, num_keys, strict=True)
    ]
    known = [number for number in numbers if isinstance(number, int)]
    return sum(known) * len(numbers) // len(known) if known and may_guess else sum(numbers)


def _common(name, default, values):
    """The value that all of them have, except None."""
    given = sorted({value for value in values if value is not None})
    if len(given) > 1:
        raise ValueError(f"Key sets of one attention must have one {name}. Received: {given}")
    return given[0] if given else default
