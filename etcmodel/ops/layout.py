"""How the queries of an attention are cut: rows into blocks, blocks into chunks.

Logits exist for one chunk at a time, in the forward and in the backward pass, which bounds memory.
A block is what shares a window of keys.
"""

import dataclasses

import tensorflow as tf

from etcmodel import tensor_utils
from etcmodel.ops import windows

__all__ = ["Chunk", "Layout", "block_layout", "release_layout", "sparse_window", "whole_layout"]

# Logits of a chunk: about 16 MB of float32, so that passes over them stay near the caches while the
# matrix products are still large.
_LOGITS_PER_CHUNK = 1 << 22
# Rows of a block: long enough for fast matrix products; the longer, the more masked pairs.
_BLOCK_LEN = 64


@dataclasses.dataclass(frozen=True)
class Layout:
    """The rows of an attention, in chunks of blocks. Numbers may be int or scalar tensors.

    Attributes:
        num_rows: Queries.
        block_len: Queries in a block.
        blocks: Blocks in a chunk.
        num_chunks: Chunks.
        radius: int or None. Keys that a query sees on each side, where keys are windows.
        margin: int or None. Keys in a window before the own key of its first query, and after
            that of its last one: at least the radius.
        is_whole: bool. Whether the only block sees all keys rather than a window of them.
        averages_outside: bool. Whether a query without any allowed key averages over all that its
            block sees, as in the authors' release, or only over keys within the radius.
    """

    num_rows: object
    block_len: object
    blocks: object
    num_chunks: object
    radius: int | None = None
    margin: int | None = None
    is_whole: bool = False
    averages_outside: bool = False

    @property
    def chunk_rows(self):
        return self.block_len * self.blocks

    @property
    def padded_rows(self):
        return self.chunk_rows * self.num_chunks

    @property
    def own_column(self):
        """Which of the keys that a block sees is its first query's own."""
        return 0 if self.is_whole else self.margin

    def pad(self, x, axis=1):
        """`x` with as many rows as all chunks have; None stays None."""
        if x is None:
            return None
        return windows.pad_axis(x, axis, after=self.padded_rows - self.num_rows)

    def chunk(self, index):
        """The `Chunk` of this index, an int or scalar tensor."""
        return Chunk(self, index)


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A chunk of a layout."""

    layout: Layout
    index: object

    @property
    def start(self):
        return self.index * self.layout.chunk_rows

    @property
    def first_column(self):
        """Where the keys begin, counted from the first query's first key within the radius."""
        return self.layout.radius - self.layout.own_column

    def slice(self, x, axis, extra=0):
        """The chunk's rows, and `extra` more, of `x`, whose `axis` is padded."""
        length = self.layout.chunk_rows + extra
        if isinstance(self.index, int):  # The only chunk.
            return x
        begin, size = [0] * len(x.shape), tensor_utils.get_shape_list(x)
        begin[axis], size[axis] = self.start, length
        return tf.slice(x, begin, size)

    def rows_of(self, x, axis=1):
        """`x` [batch, padded_rows, ...] to [batch, blocks, block_len, ...] of this chunk."""
        part = self.slice(x, axis)
        shape = tensor_utils.get_shape_list(part)
        blocked = [self.layout.blocks, self.layout.block_len]
        return tf.reshape(part, [*shape[:axis], *blocked, *shape[axis + 1 :]])

    def windows_of(self, x, axis):
        """Keys, padded by the margin on both sides, to [..., blocks, window, ...]."""
        if self.layout.is_whole:
            return tf.expand_dims(x, axis)
        layout = self.layout
        span = self.slice(x, axis, extra=2 * layout.margin)
        return windows.windows(span, layout.blocks, layout.block_len, layout.margin, axis)

    def row_positions(self):
        """int32 [blocks, block_len]."""
        positions = self.start + tf.range(self.layout.chunk_rows)
        return tf.reshape(positions, [self.layout.blocks, self.layout.block_len])

    def window_positions(self):
        """Positions of the keys of each window: int32 [blocks, window]."""
        layout = self.layout
        if layout.is_whole:
            return tf.range(layout.num_rows)[tf.newaxis]
        starts = self.start + layout.block_len * tf.range(layout.blocks) - layout.margin
        return starts[:, tf.newaxis] + tf.range(layout.block_len + 2 * layout.margin)


def block_layout(num_rows, logits_per_row, radius=None):
    """Blocks whose keys are windows of `radius` (or all keys).

    Args:
        num_rows: int or scalar tensor.
        logits_per_row: int or scalar tensor, over batch and heads.
        radius: int or None.
    """
    longest = _BLOCK_LEN
    if radius is None:
        rows_per_chunk = _LOGITS_PER_CHUNK // _at_least(1, logits_per_row)
        longest = _at_most(_at_least(8, rows_per_chunk), _BLOCK_LEN)
    num_blocks = _at_least(1, _ceil(num_rows, longest))
    # Blocks of equal length need the least padding; of windows the length must be known.
    is_known = isinstance(num_rows, int) or radius is None
    block_len = _at_least(1, _ceil(num_rows, num_blocks)) if is_known else longest
    return _chunked(num_rows, num_blocks, block_len, logits_per_row, radius=radius, margin=radius)


def release_layout(num_rows, logits_per_row, radius):
    """The blocks of the authors' release: `radius + 1` queries over three such blocks of keys."""
    block_len = radius + 1
    num_blocks = _at_least(1, _ceil(num_rows, block_len))
    return _chunked(
        num_rows,
        num_blocks,
        block_len,
        logits_per_row,
        radius=radius,
        margin=block_len,
        averages_outside=True,
    )


def _chunked(num_rows, num_blocks, block_len, logits_per_row, **options):
    num_chunks = _ceil(num_blocks * block_len * logits_per_row, _LOGITS_PER_CHUNK)
    num_chunks = _at_most(_at_least(1, num_chunks), num_blocks)
    blocks = _ceil(num_blocks, num_chunks)
    return Layout(num_rows, block_len, blocks, _ceil(num_blocks, blocks), **options)


def whole_layout(num_rows, radius, averages_outside=False):
    """One block that sees all keys, for inputs that are short beside the radius."""
    return Layout(
        num_rows, num_rows, 1, 1, radius, is_whole=True, averages_outside=averages_outside
    )


def sparse_window(radius):
    """Keys that a block of the usual length sees."""
    return _BLOCK_LEN + 2 * radius


def _ceil(number, divisor):
    return -(-number // divisor)


def _at_least(limit, number):
    return max(limit, number) if isinstance(number, int) else tf.maximum(limit, number)


def _at_most(number, limit):
    if isinstance(number, int) and isinstance(limit, int):
        return min(number, limit)
    return tf.minimum(number, limit)
