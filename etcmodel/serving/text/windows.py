"""Truncation and windows in a graph: the rules of `text.truncation`, for all examples at once.

Blocks are documents, which have no pieces, and sentences, which may be parts of them.
"""

from typing import NamedTuple

import tensorflow as tf

__all__ = ["NO_LIMIT", "Outline", "Room", "Selection", "select", "select_windows", "shares"]


def shares(sizes, room):
    """Sizes cut to a common height, so that their sum is at most `room`; the first ones get more.

    Args:
        sizes: int [batch, num_sizes].
        room: int [batch].
    Returns:
        int32 [batch, num_sizes].
    """
    sizes, room = tf.cast(sizes, tf.int64), tf.cast(room, tf.int64)[:, tf.newaxis]
    ascending = tf.sort(sizes, axis=1)
    number = tf.range(tf.shape(sizes)[1], dtype=tf.int64)
    num_left = tf.cast(tf.shape(sizes)[1], tf.int64) - number
    # What there is if all are cut to the height of each of them.
    sums = tf.cumsum(ascending, axis=1, exclusive=True) + ascending * num_left
    fits = sums <= room
    num_whole = tf.reduce_sum(tf.cast(fits, tf.int64), axis=1, keepdims=True)
    height = tf.reduce_max(tf.where(fits, ascending, 0), axis=1, keepdims=True)
    used = tf.reduce_sum(tf.minimum(sizes, height), axis=1, keepdims=True)
    num_cut = tf.cast(tf.shape(sizes)[1], tf.int64) - num_whole
    height += tf.where(num_cut > 0, (room - used) // tf.maximum(num_cut, 1), 0)
    cut = tf.minimum(sizes, height)
    left = room - tf.reduce_sum(cut, axis=1, keepdims=True)
    is_cut = tf.cast(sizes > cut, tf.int64)
    gets_more = is_cut * tf.cast(tf.cumsum(is_cut, axis=1) <= left, tf.int64)
    return tf.cast(cut + gets_more, tf.int32)


def fill_parts(outline, room):
    """Takes of each document, or sentence of none, what its share has room for, from its start.

    Args:
        outline: `windows.Outline`.
        room: `windows.Room`.
    Returns:
        (lasts, is_in): int32 and bool [batch, num_blocks]. The end of what is in of each block, and
        whether it is in, maybe without pieces.
    """
    places, is_block = outline.places, outline.is_block()
    shape = tf.shape(outline.counts)
    owners = tf.where(outline.parents >= 0, outline.parents, places)
    before = tf.cumsum(outline.counts, axis=1, exclusive=True)
    taken = before + outline.counts - tf.gather(before, owners, batch_dims=1)
    num_global = places - owners + 1
    flat_owners = tf.reshape(owners + tf.range(shape[0])[:, tf.newaxis] * shape[1], [-1])

    def shared(sizes, limit):
        """The share of each block's document."""
        sums = tf.math.unsorted_segment_sum(tf.reshape(sizes, [-1]), flat_owners, tf.size(sizes))
        return tf.gather(shares(tf.reshape(sums, shape), limit), owners, batch_dims=1)

    pieces = shared(outline.counts, room.pieces)
    fits = is_block & (num_global <= shared(tf.cast(is_block, tf.int32), room.blocks))
    left = pieces - (taken - outline.counts)
    is_whole = fits & (taken <= pieces)
    is_cut = fits & ~is_whole & (left > 0) & (not room.whole_blocks)
    lasts = tf.where(is_whole, outline.counts, tf.where(is_cut, left, 0))
    return lasts, is_whole | is_cut


NO_LIMIT = 1 << 30
_NONE = -1


class Outline(NamedTuple):
    """The sizes of the blocks of several examples.

    Attributes:
        counts: int32 [batch, num_blocks]. Pieces of each block; 0 for padding.
        parents: int32 [batch, num_blocks]. The block that it is a part of, or -1.
        num_blocks: int32 [batch]. Blocks of each example.
    """

    counts: tf.Tensor
    parents: tf.Tensor
    num_blocks: tf.Tensor

    @property
    def places(self):
        """int32 [num_blocks]: 0, 1, 2 …"""
        return tf.range(tf.shape(self.counts)[1])

    def is_block(self):
        """bool [batch, num_blocks]; False for padding."""
        return self.places < self.num_blocks[:, tf.newaxis]


class Room(NamedTuple):
    """The available room: see `text.truncation.Room`.

    Attributes:
        pieces, blocks: int32 [batch].
        whole_blocks: bool.
    """

    pieces: tf.Tensor
    blocks: tf.Tensor
    whole_blocks: bool


class Selection(NamedTuple):
    """The contents of each window.

    Attributes:
        examples: int32 [num_windows], in order.
        firsts, lasts: int32 [num_windows, num_blocks]. Pieces of each block, `[first, last)`.
        is_in: bool [num_windows, num_blocks]. Whether a block is in, maybe without pieces.
        first_new: int32 [num_windows]. How many of the example's pieces were before the window's
            first one that is in no earlier window.
    """

    examples: tf.Tensor
    firsts: tf.Tensor
    lasts: tf.Tensor
    is_in: tf.Tensor
    first_new: tf.Tensor


class _Begin(NamedTuple):
    """Where windows begin.

    Attributes:
        block, piece: int32 [num_windows].
        may_cut: bool [num_windows]. Whether the last block may be cut, whatever the room's rule.
    """

    block: tf.Tensor
    piece: tf.Tensor
    may_cut: tf.Tensor


class _Fill(NamedTuple):
    """Windows: as `Selection`; and int32 [num_windows] where the next one goes on."""

    firsts: tf.Tensor
    lasts: tf.Tensor
    is_in: tf.Tensor
    end_block: tf.Tensor
    end_piece: tf.Tensor


def select(outline, room, give_way):
    """One window of each example: see `text.truncation.select`.

    Args:
        outline: `Outline`.
        room: `Room`.
        give_way: "end", "start" or "longest".
    Returns:
        `Selection`.
    """
    zeros = tf.zeros_like(outline.num_blocks)
    if give_way == "start":
        fill = _fill_from_end(outline, room)
    elif give_way == "longest":
        empty = tf.zeros_like(outline.counts)
        fill = _Fill(empty, *fill_parts(outline, room), zeros, zeros)
    else:
        fill = _fill(outline, room, _Begin(zeros, zeros, zeros > 0))
    return _selection(outline, fill, tf.range(tf.size(zeros)), zeros)


def select_windows(outline, room, stride):
    """Windows that have all pieces and blocks between them: see `text.truncation.select_windows`.

    Args:
        outline: `Outline`.
        room: `Room`.
        stride: int. At most how many pieces at the end of a window the next one repeats.
    Returns:
        `Selection`, at least one window an example, ordered by example.
    Raises:
        tf.errors.InvalidArgumentError: if a block with its document does not fit.
    """
    zeros = tf.zeros_like(outline.num_blocks)
    rows = tf.TensorArray(
        tf.int32, 0, dynamic_size=True, infer_shape=False, element_shape=[None, 7]
    )

    def is_left(number, block, piece, rows):
        return tf.equal(number, 0) | tf.reduce_any(block < outline.num_blocks)

    def add(number, block, piece, rows):
        active = tf.where(tf.equal(number, 0) | (block < outline.num_blocks))
        examples = tf.cast(active[:, 0], tf.int32)
        new = tf.gather(block, examples), tf.gather(piece, examples)
        some = Outline(*(tf.gather(x, examples) for x in outline))
        begin, fill = _next_window(some, _of_examples(room, examples), new, stride)
        columns = (examples, tf.fill(tf.shape(examples), number), *begin, *new)
        rows = rows.write(number, tf.stack([tf.cast(x, tf.int32) for x in columns], axis=1))
        block = tf.tensor_scatter_nd_update(block, active, fill.end_block)
        piece = tf.tensor_scatter_nd_update(piece, active, fill.end_piece)
        return number + 1, block, piece, rows

    number, *_, rows = tf.while_loop(is_left, add, (0, zeros, zeros, rows))
    columns = tf.unstack(rows.concat(), 7, axis=1)
    order = tf.argsort(columns[0] * number + columns[1])
    examples, _, block, piece, may_cut, *new = (tf.gather(x, order) for x in columns)
    outline = Outline(*(tf.gather(x, examples) for x in outline))
    begin = _Begin(block, piece, may_cut > 0)
    fill = _fill(outline, _of_examples(room, examples), begin)
    return _selection(outline, fill, examples, _place(outline, *new))


def _of_examples(room, examples):
    return Room(
        tf.gather(room.pieces, examples), tf.gather(room.blocks, examples), room.whole_blocks
    )


def _next_window(outline, room, new, stride):
    """(`_Begin`, `_Fill`) of the first that goes beyond `new`, (block, piece)."""
    start = _step_back(outline, new, stride, room.whole_blocks)
    no = tf.zeros_like(new[0], tf.bool)
    begins = [_Begin(*start, no), _Begin(*new, no)]
    if room.whole_blocks:
        begins.append(_Begin(*new, ~no))
    chosen, fill = begins[-1], _fill(outline, room, begins[-1])
    goes_on = _is_beyond(fill, new) | tf.equal(outline.num_blocks, 0)
    too_small = (
        "`max_long_len` or `max_global_len` is too small: a window has no room for a block of text."
    )
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(goes_on), [too_small])]):
        chosen = _Begin(*(tf.identity(x) for x in chosen))
    for begin in begins[-2::-1]:
        other = _fill(outline, room, begin)
        is_better = _is_beyond(other, new)
        chosen = _Begin(*_where(is_better, begin, chosen))
        fill = _Fill(*_where(is_better, other, fill))
    return chosen, fill


def _where(condition, ones, others):
    """`tf.where` of pairs of tensors by their first axis."""
    for one, other in zip(ones, others, strict=True):
        shape = [-1] + [1] * (one.shape.rank - 1)
        yield tf.where(tf.reshape(condition, shape), one, other)


def _is_beyond(fill, new):
    block, piece = new
    is_same = tf.equal(fill.end_block, block)
    return (fill.end_block > block) | (is_same & (fill.end_piece > piece))


def _fill(outline, room, begin):
    """Takes what is in from (block, piece) on."""
    places, block = outline.places, begin.block[:, tf.newaxis]
    is_begin = tf.equal(places, block)
    firsts = tf.where(is_begin, begin.piece[:, tf.newaxis], 0)
    wanted = tf.where(places >= block, outline.counts - firsts, 0)
    taken = tf.cumsum(wanted, axis=1)
    # A sentence in the middle of a document needs the document's global token, too.
    has_parent = _at(outline.parents, begin.block) >= 0
    num_global = places - block + 1 + tf.cast(has_parent, tf.int32)[:, tf.newaxis]
    fits = (num_global <= room.blocks[:, tf.newaxis]) & outline.is_block() & (places >= block)
    is_whole = fits & (taken <= room.pieces[:, tf.newaxis])
    end = begin.block + _count(is_whole)
    left = room.pieces - (_at(taken, end) - _at(wanted, end))
    may_cut = begin.may_cut | (not room.whole_blocks)
    is_cut = _at(fits, end) & (left > 0) & may_cut
    is_last = is_cut[:, tf.newaxis] & tf.equal(places, end[:, tf.newaxis])
    lasts = tf.where(is_last, firsts + left[:, tf.newaxis], tf.where(is_whole, outline.counts, 0))
    is_in = is_whole | is_last
    end_first = tf.where(tf.equal(end, begin.block), begin.piece, 0)
    return _Fill(
        firsts=tf.where(is_in, firsts, 0),
        lasts=lasts,
        is_in=is_in,
        end_block=end,
        end_piece=tf.where(is_cut, end_first + left, end_first),
    )


def _fill_from_end(outline, room):
    """Takes what is in from the end back; of the first block that is in maybe the end alone."""
    places, num_blocks = outline.places, outline.num_blocks[:, tf.newaxis]
    taken = tf.cumsum(outline.counts, axis=1, reverse=True)
    num_global = num_blocks - places + tf.cast(outline.parents >= 0, tf.int32)
    fits = (num_global <= room.blocks[:, tf.newaxis]) & outline.is_block()
    is_whole = fits & (taken <= room.pieces[:, tf.newaxis])
    cut = outline.num_blocks - _count(is_whole) - 1
    left = room.pieces - (_at(taken, cut) - _at(outline.counts, cut))
    is_cut = (cut >= 0) & _at(fits, cut) & (left > 0) & (not room.whole_blocks)
    is_first = is_cut[:, tf.newaxis] & tf.equal(places, cut[:, tf.newaxis])
    is_in = is_whole | is_first
    firsts = tf.where(is_first, outline.counts - left[:, tf.newaxis], 0)
    lasts = tf.where(is_in, outline.counts, 0)
    zeros = tf.zeros_like(cut)
    return _Fill(firsts, lasts, is_in, zeros, zeros)


def _selection(outline, fill, examples, first_new):
    """Without documents of which no sentence is in; with those of which one is."""
    shape = tf.shape(outline.parents)
    offsets = tf.range(shape[0])[:, tf.newaxis] * shape[1]
    owners = tf.where(outline.parents >= 0, outline.parents + offsets, _NONE)

    def of_parts(flags):
        """bool: documents that have a part with a flag."""
        sums = tf.math.unsorted_segment_sum(tf.cast(flags, tf.int32), owners, shape[0] * shape[1])
        return tf.reshape(sums, shape) > 0

    has_parts = of_parts(outline.is_block())
    is_in = (fill.is_in & ~has_parts) | of_parts(fill.is_in)
    return Selection(examples, fill.firsts, fill.lasts, is_in, first_new)


def _step_back(outline, new, stride, whole_blocks):
    """The place `stride` pieces before (block, piece), or the first start of a block after it."""
    block, piece = new
    before = tf.cumsum(outline.counts, axis=1, exclusive=True)
    target = _place(outline, block, piece) - stride
    reached = (before <= target[:, tf.newaxis]) & (outline.places <= block[:, tf.newaxis])
    found = tf.maximum(_count(reached) - 1, 0)
    within = tf.maximum(target - _at(before, found), 0)
    if not whole_blocks:
        return found, within
    is_inside = within > 0
    # No further than where the step began.
    is_new = is_inside & (found >= block)
    return (
        tf.where(is_inside & ~is_new, found + 1, found),
        tf.where(is_new, piece, 0),
    )


def _place(outline, block, piece):
    """int32 [batch]: how many pieces are before a place."""
    before = tf.cumsum(outline.counts, axis=1)
    return tf.where(block > 0, _at(before, block - 1), 0) + piece


def _count(flags):
    """int32 [batch]: how many are True."""
    return tf.reduce_sum(tf.cast(flags, tf.int32), axis=1)


def _at(values, places):
    """The value of each row at its place; 0 or False behind the end, and before the beginning."""
    values = tf.pad(values, [[0, 0], [1, 1]])
    places = tf.clip_by_value(places + 1, 0, tf.shape(values)[1] - 1)
    return tf.gather(values, places, batch_dims=1)
