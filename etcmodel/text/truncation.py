"""Selects what of a document fits: all, truncated by a rule, or in overlapping windows.

This module works with numbers of pieces only: each block has some, and needs a global token, as do
the blocks that it is part of. Questions are never truncated; they are counted elsewhere.
"""

import dataclasses
from typing import NamedTuple

from absl import logging


class CutTotals:
    """Counts examples, tokens and blocks of text, and how many of them were truncated."""

    def __init__(self):
        self._num_cut = self._num_examples = 0
        self._tokens = self._blocks = (0, 0)  # The truncated ones, and all.

    def add(self, encodings):
        """Counts the examples of a batch by its `encoding.Encoding`s."""
        for x in encodings:
            if x.window == 0:  # It counts what all of the example's windows leave out.
                self._num_examples += 1
                self._num_cut += bool(x.cut)
                self._tokens = _sum(self._tokens, x.cut.num_tokens, len(x.source.ids))
                self._blocks = _sum(self._blocks, x.cut.num_blocks, len(x.document.blocks))

    def log(self):
        """Logs a warning line if anything was truncated."""
        if self._num_cut:
            logging.warning(
                "Cut: %d of %d examples; %d of %d tokens, %d of %d blocks of text.",
                self._num_cut,
                self._num_examples,
                *self._tokens,
                *self._blocks,
            )


def _sum(counts, num_cut, num):
    return counts[0] + num_cut, counts[1] + num


GIVE_WAY = END, START, LONGEST = ("end", "start", "longest")


class Span(NamedTuple):
    """Pieces `first` to `last` (exclusive) of a block, counted from the block's first piece."""

    block: int
    first: int
    last: int


@dataclasses.dataclass(frozen=True)
class Room:
    """The room for a document.

    Attributes:
        pieces, blocks: int. Long and global tokens; `math.inf` for no limit.
        whole_blocks: bool. Whether blocks are included only as a whole; else the last one may be
            cut.
    """

    pieces: float
    blocks: float
    whole_blocks: bool = False


@dataclasses.dataclass(frozen=True)
class Selection:
    """The included parts of a document.

    Attributes:
        spans: tuple of `Span`, in order; blocks without pieces, such as those that contain others,
            have empty ones.
        first_new: (block, piece). Everything before it was in an earlier window.
    """

    spans: tuple
    first_new: tuple = (0, 0)


class Outline:
    """The sizes of a document's blocks, without its questions.

    Args:
        counts: sequence of int [num_blocks]. Pieces of each block.
        parents: sequence of int [num_blocks]. The block that each is part of, or -1.
    """

    def __init__(self, counts, parents):
        self.counts = [int(count) for count in counts]
        self.parents = [int(parent) for parent in parents]
        self.has_parts = [False] * len(self.counts)
        for parent in self.parents:
            if parent >= 0:
                self.has_parts[parent] = True

    def lineage(self, block):
        """Returns the block and all that it is part of, from the block up."""
        while block >= 0:
            yield block
            block = self.parents[block]

    def part(self, block):
        """Returns the outermost block that it is part of, such as one of several documents."""
        *_, outermost = self.lineage(block)
        return outermost


class _Fill:
    """Includes blocks as long as there is room."""

    def __init__(self, outline, room):
        self.outline = outline
        self.room = room
        self.num_pieces = 0
        self.spans = {}

    def take(self, block, first=0, from_end=False):
        """Includes a block from its piece `first` on; False if not all of it fits."""
        new = [x for x in self.outline.lineage(block) if x not in self.spans]
        wanted = self.outline.counts[block] - first
        left = self.room.pieces - self.num_pieces
        if len(self.spans) + len(new) > self.room.blocks:
            return False
        taken = int(min(wanted, left))
        if taken < wanted and (self.room.whole_blocks or taken < 1):
            return False
        for other in new:
            self.spans[other] = Span(other, 0, 0)
        last = self.outline.counts[block] if from_end else first + taken
        self.spans[block] = Span(block, last - taken, last)
        self.num_pieces += taken
        return taken == wanted

    def selection(self, first_new=(0, 0)):
        """The selection, without blocks that contain others of which none is included."""
        kept = set()
        for span in self.spans.values():
            if span.last > span.first or not self.outline.has_parts[span.block]:
                kept.update(self.outline.lineage(span.block))
        return Selection(tuple(self.spans[block] for block in sorted(kept)), first_new)


def select(outline, room, give_way=END):
    """Selects the part of a document that fits into one piece.

    Args:
        outline: `Outline`.
        room: `Room`.
        give_way: str. What is left out if not all fits: the "end" or the "start" of the document,
            or the ends of its "longest" parts (such as documents), so that all get a share.
    Returns:
        `Selection`.
    """
    num_blocks = len(outline.counts)
    if sum(outline.counts) <= room.pieces and num_blocks <= room.blocks:
        spans = (Span(block, 0, count) for block, count in enumerate(outline.counts))
        return Selection(tuple(spans))
    if give_way == LONGEST:
        return _fill_parts(outline, room)
    fill = _Fill(outline, room)
    from_end = give_way == START
    for block in reversed(range(num_blocks)) if from_end else range(num_blocks):
        if not fill.take(block, from_end=from_end):
            break
    return fill.selection()


def _fill_parts(outline, room):
    """Includes each part up to a length that is the same for all truncated ones."""
    parts = [outline.part(block) for block in range(len(outline.counts))]
    pieces, blocks = {}, {}
    for part, count in zip(parts, outline.counts, strict=True):
        pieces[part] = pieces.get(part, 0) + count
        blocks[part] = blocks.get(part, 0) + 1
    shares = zip(
        _shares([*pieces.values()], room.pieces),
        _shares([*blocks.values()], room.blocks),
        strict=True,
    )
    rooms = {
        part: Room(*share, room.whole_blocks) for part, share in zip(pieces, shares, strict=True)
    }
    fills = {part: _Fill(outline, own_room) for part, own_room in rooms.items()}
    full = set()
    for block, part in enumerate(parts):
        if part not in full and not fills[part].take(block):
            full.add(part)
    spans = [span for fill in fills.values() for span in fill.selection().spans]
    return Selection(tuple(sorted(spans)))


def _shares(sizes, room):
    """Cuts sizes to a common maximum so that their sum fits `room`; the first ones get more."""
    if sum(sizes) <= room:
        return sizes
    height, left, rest = 0, room, sorted(sizes)
    while rest and (rest[0] - height) * len(rest) <= left:
        left -= (rest[0] - height) * len(rest)
        height = rest.pop(0)
    height += left // max(len(rest), 1)
    shares = [min(size, height) for size in sizes]
    for index, size in enumerate(sizes):
        if size > shares[index] and sum(shares) < room:
            shares[index] += 1
    return shares


def select_windows(outline, room, stride):
    """Selects windows that together have all pieces and blocks.

    Args:
        outline, room: as in `select`. With `whole_blocks`, a block is cut only if it does not fit
            into a window of its own.
        stride: int. The most pieces at the end of a window that the next one repeats; in whole
            blocks with `whole_blocks`.
    Returns:
        list of `Selection`, at least one.
    Raises:
        ValueError: if a block, with those that it is part of, does not fit.
    """
    windows, new = [], (0, 0)
    last = (len(outline.counts), 0)
    while not windows or new < last:
        fill, end = _next_window(outline, room, new, stride)
        windows.append(fill.selection(new))
        new = end
    return windows


def _next_window(outline, room, new, stride):
    """(fill, its end) of the window that begins with repeated pieces, and goes beyond `new`."""
    cutting = dataclasses.replace(room, whole_blocks=False)
    start = _step_back(outline, new, stride, room.whole_blocks)
    for own_room, begin in ((room, start), (room, new), (cutting, new)):
        fill = _Fill(outline, own_room)
        end = _fill_from(fill, begin)
        if end > new or not outline.counts:
            return fill, end
    depth = len([*outline.lineage(new[0])])
    raise ValueError(
        f"A window has room for {room.pieces} pieces and {room.blocks} global tokens of text, too "
        f"few for a block within {depth - 1} others. Raise `max_long_len` or `max_global_len`."
    )


def _fill_from(fill, begin):
    """Includes pieces from (block, piece) on; returns the end in the same form."""
    block, piece = begin
    while block < len(fill.outline.counts):
        if not fill.take(block, piece):
            span = fill.spans.get(block)
            return (block, span.last) if span and span.last > piece else (block, piece)
        block, piece = block + 1, 0
    return block, 0


def _step_back(outline, place, stride, whole_blocks):
    """The place `stride` pieces before (block, piece), or the first start of a block after it."""
    block, piece = place
    while stride > 0 and (block, piece) > (0, 0):
        if piece == 0:
            block, piece = block - 1, outline.counts[block - 1]
        if piece > stride:
            return (block, piece - stride) if not whole_blocks else min(place, (block + 1, 0))
        stride, piece = stride - piece, 0
    return block, piece
