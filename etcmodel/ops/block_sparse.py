"""BigBird's attention in blocks of tokens (Zaheer et al. 2020, arXiv:2007.14062, section 2).

The first and the last block attend to everything. Any other block attends to the first and the
last, to itself and its two neighbors, each once, and to some random blocks once more each: a block
that is named twice counts twice in the softmax. That is how Hugging Face's library computes it, in
which the random blocks of an evaluation are all the first one.
"""

import dataclasses
import functools
import sys

import numpy as np
import tensorflow as tf

from etcmodel.ops import blockwise, labels, masks
from etcmodel.ops.key_sets import KeySet
from etcmodel.ops.reach import Reach, SharedKeys, View, WindowedKeys
from etcmodel.ops.shapes import at_least, ceil_div, get_shape_list, pad_axis, slice_axis
from etcmodel.ops.tiles import TILE_ROWS, current_tiling

# So that there is a block between the first and the last, also where XLA compiles both branches of
# a choice by length.
_LEAST_BLOCKS = 3


def longest_full(size, num_random):
    """The longest input that has full attention, in tokens.

    Args:
        size: int. Tokens per block. None: all inputs have it.
        num_random: int. Random blocks of a block.

    >>> from etcmodel.ops import block_sparse
    >>> block_sparse.longest_full(size=64, num_random=3)
    704
    """
    return sys.maxsize if size is None else (5 + 2 * num_random) * size


def num_blocks_of(length, size):
    """The number of blocks of a sparse input of this length: int or scalar tensor."""
    return at_least(_LEAST_BLOCKS, ceil_div(length, size))


# The random blocks of training, which Hugging Face's library draws with the layer's number as seed.

# Padded lengths for which they are drawn as in the authors' code.
RELEASED_LENGTHS = (1024, 3072, 4096)
_REGION = 1024  # There, from the first tokens alone.


def seeded_blocks(
    seed, num_heads, size, num_random, max_length, length, released_lengths=RELEASED_LENGTHS
):
    """Returns the random blocks of training, which never change.

    They are those of Hugging Face's library: from the first 1,024 tokens for inputs of released
    lengths, from the first `5 + 2 * num_random` blocks for others. Where there are too few blocks
    to choose from, the first one takes the place of others.

    Args:
        seed: int. The number of the layer.
        num_heads, num_random: int.
        size: int. Tokens per block.
        max_length: int. The longest input that the model takes, in tokens.
        length: int or scalar tensor. The length of the input.
        released_lengths: sequence of int. Lengths, padded to whole blocks. With none, the blocks of
            a token do not depend on how far its text is padded.
    Returns:
        int32 [num_heads, number of blocks - 2, num_random]: for each block but the first and the
        last the numbers of its random ones.

    >>> from etcmodel.ops import block_sparse
    >>> block_sparse.seeded_blocks(0, 1, size=4, num_random=2, max_length=64, length=40).shape
    TensorShape([1, 8, 2])
    """
    num_blocks = num_blocks_of(length, size)
    options = (seed, num_heads, size, num_random, max_length)
    table = _drawn_from_first(*options)
    is_released = [num_blocks * size == known for known in released_lengths]
    if any(x is True for x in is_released):
        table = _drawn_as_released(*options)
    elif any(tf.is_tensor(x) for x in is_released):
        table = tf.where(tf.reduce_any(is_released), _drawn_as_released(*options), table)
    return tf.convert_to_tensor(table)[:, : num_blocks - 2]


@functools.lru_cache(maxsize=256)
def _drawn_from_first(seed, num_heads, size, num_random, max_length):
    """int32 [num_heads, rows, num_random], for any number of blocks up to `max_length`'s."""
    random, top = np.random.RandomState(seed), 5 + 2 * num_random
    table = np.zeros([num_heads, -(-max_length // size), num_random], np.int32)
    for row in range(table.shape[1]):
        block = row + 1
        excluded = {0, top - 1, block - 1, block, block + 1}
        excluded |= {top - 2} if block == 1 else {1} if block == top - 2 else set()
        for head in range(num_heads):
            drawn = [x for x in random.permutation(np.arange(top)) if x not in excluded]
            table[head, row] = drawn[:num_random]
    return table


@functools.lru_cache(maxsize=256)
def _drawn_as_released(seed, num_heads, size, num_random, max_length):
    """Shaped as the result of `_drawn_from_first`; rows behind `max_length`'s are 0."""
    random, num_blocks = np.random.RandomState(seed), max_length // size
    last = _REGION // size - 1 if 2 * size < _REGION else num_blocks - 1
    table = np.zeros([num_heads, -(-max_length // size), num_random], np.int32)
    for head in range(num_heads):
        for block in range(1, num_blocks - 1):
            pool = random.permutation(_pool(block, last, num_blocks))[:num_random]
            table[head, block - 1, : len(pool)] = pool
    return table


def _pool(block, last, num_blocks):
    """The blocks from which a block's random ones are drawn, up to `last`."""
    pool = np.arange(1, min(last, num_blocks - 2) + 1)
    if block <= 2:
        return pool[pool > block + 1]
    if block >= num_blocks - 3 or block - 2 > last:
        return pool
    if block + 1 == last:
        return pool[pool <= block - 2]
    return pool[(pool <= block - 2) | (pool >= block + 2)]


# The pattern, as key sets.


@dataclasses.dataclass(frozen=True)
class BlockWindow(Reach):
    """A query attends to the keys of its block of the sequence, and of the blocks beside it.

    Attributes:
        size: int, at least 1. Tokens per block.

    >>> from etcmodel.ops import block_sparse, blockwise, key_sets
    >>> queries = keys = tf.zeros([1, 4, 1, 8])
    >>> near = key_sets.KeySet(keys, tf.eye(4)[None, :, None], block_sparse.BlockWindow(1))
    >>> blockwise.attend(queries, [near])[0, 0, 0].numpy()
    array([0.5, 0.5, 0. , 0. ], dtype=float32)
    """

    size: int

    def sees(self, queries, keys):
        return abs(queries // self.size - keys // self.size) <= 1

    @property
    def farthest_before(self):
        return 2 * self.size - 1

    @property
    def farthest_after(self):
        return 2 * self.size - 1

    @property
    def wanted_rows(self):
        return self.tile_rows(TILE_ROWS)

    def tile_rows(self, rows):
        return max(1, rows // self.size) * self.size

    def keys_per_row(self, tile_rows, num_keys):
        return self.tile_rows(tile_rows) + 2 * self.size

    def view(self, tiles, num_keys):
        if tiles.is_one:
            return SharedKeys(self, tiles, num_keys)
        return WindowedKeys(self, tiles, num_keys, left=self.size, right=self.size)


@dataclasses.dataclass(frozen=True)
class ChosenBlocks(Reach):
    """A query attends to the keys of some blocks, which each head chooses for each of its blocks.

    Masks know no heads: give `KeyCounts` to what must not be attended to.

    Attributes:
        size: int. Tokens per block.
        blocks: int32 [num_heads, blocks of queries, number]. The numbers of the blocks of keys.
    """

    size: int
    blocks: tf.Tensor

    def sees(self, queries, keys):
        return None  # In `ChosenKeys`, by gathering these alone.

    @property
    def wanted_rows(self):
        return self.size

    def tile_rows(self, rows):
        return self.size

    def keys_per_row(self, tile_rows, num_keys):
        return self.blocks.shape[-1] * self.size

    def view(self, tiles, num_keys):
        num_tiles = tiles.tiles_per_step * tiles.num_steps
        unused = num_tiles - get_shape_list(self.blocks)[1]
        return ChosenKeys(self, tiles, num_keys, pad_axis(self.blocks, 1, after=unused))


@dataclasses.dataclass(frozen=True)
class ChosenKeys(View):
    """A tile, one block of queries, has the keys of its blocks.

    Attributes:
        blocks: int32 [num_heads, tiles, number], for all steps.
    """

    reach: object
    tiles: object
    num_keys: object
    blocks: tf.Tensor
    own_column = None
    stride = 1

    @property
    def window(self):
        return self.blocks.shape[-1] * self.reach.size

    def arrange(self, x, axis=1, value=0):
        return x

    def _blocks_of(self, step):
        """int32 [num_heads, tiles of the step, number]."""
        if isinstance(step.index, int):  # The only step.
            return self.blocks
        tiles = self.tiles.tiles_per_step
        return slice_axis(self.blocks, 1, step.index * tiles, tiles)

    def gather(self, x, step, axis=1):
        """See `View`; values by key [batch, keys] become [heads, batch, tiles, window]."""
        blocks = self._blocks_of(step)
        heads, tiles, number = get_shape_list(blocks)
        size = self.reach.size
        if axis == 1:
            batch, keys = get_shape_list(x)
            by_block = tf.gather(tf.reshape(x, [batch, keys // size, size]), blocks, axis=1)
            return tf.reshape(
                tf.transpose(by_block, [1, 0, 2, 3, 4]), [heads, batch, tiles, number * size]
            )
        heads, batch, keys, width = get_shape_list(x)
        by_block = tf.reshape(x, [heads, batch, keys // size, size * width])
        chosen = tf.reshape(blocks, [heads, tiles * number])
        gathered = tf.gather(by_block, chosen, axis=2, batch_dims=1)
        return tf.reshape(gathered, [heads, batch, tiles, number * size, width])

    def exists(self, step):
        return None

    def piece_spec(self, x):
        tiles = self.tiles.tiles_per_step
        tiles = tiles if isinstance(tiles, int) else None
        return tf.TensorSpec([*x.shape[:2], tiles, self.window, x.shape[-1]], x.dtype)

    def scatter(self, x):
        return x  # Until `join`, which knows the blocks of all steps.

    def join(self, pieces):
        steps, heads, batch, tiles, window, width = get_shape_list(pieces)
        number, size = window // self.reach.size, self.reach.size
        x = tf.transpose(pieces, [1, 0, 3, 2, 4, 5])
        x = tf.reshape(x, [heads, steps * tiles, batch, number, size * width])
        x = tf.cast(tf.transpose(x, [0, 1, 3, 2, 4]), tf.float32)
        num_blocks = self.num_keys // size
        flat = self.blocks + num_blocks * tf.range(heads)[:, tf.newaxis, tf.newaxis]
        sums = tf.math.unsorted_segment_sum(
            tf.reshape(x, [heads * steps * tiles * number, batch, size * width]),
            tf.reshape(flat, [-1]),
            heads * num_blocks,
        )
        sums = tf.reshape(sums, [heads, num_blocks, batch, size, width])
        sums = tf.transpose(sums, [0, 2, 1, 3, 4])
        return tf.reshape(sums, [heads, batch, self.num_keys, width])


@dataclasses.dataclass(frozen=True)
class KeyCounts(labels.Labels):
    """How many times each key counts in the softmax.

    Attributes:
        counts: int [batch or 1, num_keys]. 0 for keys that are not attended to.

    >>> from etcmodel.ops import block_sparse, blockwise, key_sets
    >>> twice = block_sparse.KeyCounts(tf.constant([[2, 1, 0]]))
    >>> keys = key_sets.KeySet(tf.zeros([1, 3, 1, 8]), tf.eye(3)[None, :, None], labels=twice)
    >>> blockwise.attend(tf.zeros([1, 1, 1, 8]), [keys])[0, 0, 0].numpy().round(2)
    array([0.67, 0.33, 0.  ], dtype=float32)
    """

    counts: tf.Tensor

    def prepare(self, view):
        return dataclasses.replace(self, counts=view.arrange(tf.cast(self.counts, tf.int32)))

    def tensors(self):
        return []

    def for_steps(self, tensors):
        return self

    def logits(self, logits, queries, bias, pairs, scale):
        by_key = _log(pairs.keys(self.counts))[..., tf.newaxis, :]
        return labels.add_bias(logits, bias + by_key)

    def gradients(self, gradient, queries, pairs, scale):
        return None, []

    def join(self, gradients):
        return []


def _log(counts):
    """Logarithms of counts, of 0 a finite one: float32."""
    logs = tf.math.log(tf.cast(tf.maximum(counts, 1), tf.float32))
    return tf.where(counts > 0, logs, masks.MASKED_LOGIT)


@dataclasses.dataclass(frozen=True)
class _Ends:
    """The first and the last block of texts, and the blocks of which others are in between.

    Attributes:
        size: int. Tokens per block.
        num_blocks: int or scalar tensor. Blocks of the padded batch.
        last: int32 [batch], the number of each text's last block; None for the batch's last.
    """

    size: int
    num_blocks: object
    last: tf.Tensor | None

    def divide(self, x):
        """Divides [batch, length, …] into what is between, and the two blocks, 2 * size tokens.

        With ends by text all but the first block is between. One division, whose gradient is one
        tensor: that of a slice is as large as what it is cut from.
        """
        if self.last is None:
            first, between, last = tf.split(x, [self.size, -1, self.size], axis=1)
        else:
            first, between = tf.split(x, [self.size, -1], axis=1)
            last = tf.gather(self._blocks(x), self.last, axis=1, batch_dims=1)
        return between, tf.concat([first, last], 1)

    def is_between(self):
        """Marks the tokens between before each text's last block: bool [batch, …]; or None."""
        if self.last is None:
            return None
        blocks = 1 + tf.range((self.num_blocks - 1) * self.size) // self.size
        return blocks < self.last[:, tf.newaxis]

    def join(self, between, of_ends):
        """The inverse of `divide`."""
        first, of_last = tf.split(of_ends, 2, axis=1)
        if self.last is None:
            return tf.concat([first, between, of_last], 1)
        is_last = tf.range(self.num_blocks) == self.last[:, tf.newaxis]
        blocks = self._blocks(tf.concat([first, between], 1))
        is_last = tf.reshape(is_last, [*get_shape_list(is_last), *[1] * (len(blocks.shape) - 2)])
        blocks = tf.where(is_last, of_last[:, tf.newaxis], blocks)
        batch, num_blocks, size, *rest = get_shape_list(blocks)
        return tf.reshape(blocks, [batch, num_blocks * size, *rest])

    def _blocks(self, x):
        batch, _, *rest = get_shape_list(x)
        return tf.reshape(x, [batch, self.num_blocks, self.size, *rest])


@tf.autograph.experimental.do_not_convert
def attend(
    queries,
    keys,
    values,
    size,
    num_random,
    *,
    random_blocks=None,
    token_mask=None,
    lengths=None,
    dropout_rate=0.0,
):
    """Attends in blocks, or to everything if the input is not longer than `longest_full`.

    Args:
        queries, keys, values: float [batch, length, num_heads, size_per_head].
        size: int. Tokens per block. The last block may be shorter. None: always attends to
            everything.
        num_random: int. The number of random blocks of each block.
        random_blocks: int32 [num_heads, number of blocks - 2, num_random], for each block but the
            first and the last; see `num_blocks_of`. None: all are the first block.
        token_mask: bool [batch, length] or None. False for what is not attended to. In blocks such
            queries get 0; in full attention they attend like others, and with no token in a text
            to everything.
        lengths: int32 [batch] or None. The last block of a text is that of its last token, and a
            text that is not longer than `longest_full` has full attention, whatever the length of
            the batch. None: the last block is the batch's, for all texts.
        dropout_rate: float. Dropout rate of the probabilities of full attention; there is none
            in blocks.
    Returns:
        float, shaped as the queries.
    """
    length, most = get_shape_list(queries)[1], longest_full(size, num_random)

    def attend_fully(first=None):
        taken = [None if x is None else x[:, :first] for x in (queries, keys, values, token_mask)]
        return _attend_fully(*taken, dropout_rate)

    def attend_sparsely():
        found = _attend_sparsely(
            queries, keys, values, size, num_random, random_blocks, token_mask, lengths
        )
        if lengths is None:
            return found
        is_short = (lengths <= most)[:, tf.newaxis, tf.newaxis, tf.newaxis]
        full = pad_axis(attend_fully(most), 1, after=length - most)
        return tf.where(is_short, full, found)

    return _by_length(length, most, attend_fully, attend_sparsely)


def _by_length(length, most, of_full, of_sparse):
    """What one of the functions returns, by whether attention is full."""
    if isinstance(length, int) or most == sys.maxsize:
        return of_full() if most == sys.maxsize or length <= most else of_sparse()
    return tf.cond(length <= most, of_full, of_sparse)


def _attend_fully(queries, keys, values, token_mask, dropout_rate):
    if token_mask is not None:
        # Without tokens, all logits are the same.
        has_tokens = tf.reduce_any(token_mask, axis=1)[:, tf.newaxis, tf.newaxis, tf.newaxis]
        queries = tf.where(has_tokens, queries, tf.zeros([], queries.dtype))
    key_masks = () if token_mask is None else (masks.KeyMask(token_mask),)
    return blockwise.attend(
        queries, [KeySet(keys, values, masks=key_masks)], dropout_rate=dropout_rate
    )


def _attend_sparsely(queries, keys, values, size, num_random, random_blocks, token_mask, lengths):
    length = get_shape_list(queries)[1]
    num_blocks = num_blocks_of(length, size)
    is_key = _is_key(token_mask, length, num_blocks * size)
    queries, keys, values = (
        pad_axis(x, 1, after=num_blocks * size - length) for x in (queries, keys, values)
    )
    ends = _Ends(size, num_blocks, None if lengths is None else _last_blocks(lengths, size))
    inner = _inner_sets(keys, values, ends, is_key, num_random, random_blocks)
    between, of_ends = ends.divide(queries)
    # Chosen blocks are gathered for one block of queries at a time.
    tiling = None if random_blocks is None else dataclasses.replace(current_tiling(), rows=size)
    between = blockwise.attend(between, inner, tiling=tiling)
    key_masks = () if is_key is None else (masks.KeyMask(is_key),)
    of_ends = blockwise.attend(of_ends, [KeySet(keys, values, masks=key_masks)])
    outputs = ends.join(between, of_ends)
    if not (isinstance(length, int) and length == num_blocks * size):
        outputs = outputs[:, :length]
    if token_mask is None:
        return outputs
    return tf.where(token_mask[:, :, tf.newaxis, tf.newaxis], outputs, tf.zeros([], outputs.dtype))


def _is_key(token_mask, length, places):
    """Marks the keys that are attended to: bool [batch or 1, places]; None if all are."""
    if token_mask is None:
        if isinstance(length, int) and length == places:
            return None
        token_mask = tf.ones([1, length], tf.bool)
    return pad_axis(token_mask, 1, after=places - length, value=False)


def _last_blocks(lengths, size):
    """The number of each text's last block, which is not the first: int32 [batch]."""
    return tf.maximum(ceil_div(lengths, size), 2) - 1


def _inner_sets(keys, values, ends, is_key, num_random, random_blocks):
    """The key sets of the blocks between the ends."""
    around = [mask for mask in (is_key, ends.is_between()) if mask is not None]
    if is_key is not None:
        # Not `divide`: the mask may be one row for all texts.
        around[0] = is_key[:, ends.size : -ends.size if ends.last is None else None]
    copies = num_random if random_blocks is None else 0
    counts = tf.concat([tf.fill([1, ends.size], 1 + copies), tf.ones([1, ends.size], tf.int32)], 1)
    if is_key is not None:
        counts *= tf.cast(_taken_mask(ends, is_key), tf.int32)
    parts = zip(ends.divide(keys), ends.divide(values), strict=True)
    (keys_between, values_between), of_ends = parts
    around = tuple(map(masks.KeyMask, around))
    sets = [
        KeySet(keys_between, values_between, BlockWindow(ends.size), masks=around),
        KeySet(*of_ends, labels=KeyCounts(counts)),
    ]
    if random_blocks is None or not num_random:
        return sets
    if ends.last is not None:  # The batch's last block is like others.
        random_blocks = pad_axis(random_blocks, 1, after=1)
    counts = tf.ones([1, get_shape_list(keys)[1]], tf.int32)
    counts = counts if is_key is None else tf.cast(is_key, tf.int32)
    chosen = ChosenBlocks(ends.size, random_blocks)
    return [*sets, KeySet(keys, values, chosen, labels=KeyCounts(counts))]


def _taken_mask(ends, is_key):
    if ends.last is not None and is_key.shape[0] == 1:
        is_key = tf.repeat(is_key, get_shape_list(ends.last)[0], axis=0)
    return ends.divide(is_key)[1]


# All probabilities, for inspection.


def attention_probs(queries, keys, counts, token_mask=None):
    """Computes the probabilities of all pairs; that of a pair that counts often, of one time.

    Args:
        queries, keys: see `attend`.
        counts: int32, of `pair_counts`.
        token_mask: see `attend`.
    Returns:
        float32 [batch, num_heads, length, length]. Rows of masked queries mean nothing.
    """
    if token_mask is not None:
        counts *= tf.cast(token_mask, tf.int32)[:, tf.newaxis, tf.newaxis]
    rows, columns = (tf.transpose(tf.cast(x, tf.float32), [0, 2, 1, 3]) for x in (queries, keys))
    logits = tf.matmul(rows, columns, transpose_b=True) * queries.shape[-1] ** -0.5
    return tf.nn.softmax(logits + _log(counts)) / tf.cast(tf.maximum(counts, 1), tf.float32)


@tf.autograph.experimental.do_not_convert
def pair_counts(length, size, num_random, *, random_blocks=None, lengths=None):
    """How often pairs of tokens count in the softmax, masks aside.

    Args:
        length: int or scalar tensor.
        size, num_random, random_blocks, lengths: see `attend`.
    Returns:
        int32 [batch or 1, num_heads or 1, length, length].
    """
    most = longest_full(size, num_random)

    def of_blocks():
        num_blocks = num_blocks_of(length, size)
        last = num_blocks - 1 if lengths is None else _last_blocks(lengths, size)
        last = tf.reshape(last, [-1, 1, 1, 1])
        counts = _block_counts(num_blocks, last, num_random, random_blocks)
        for axis in (2, 3):
            counts = tf.repeat(counts, size, axis=axis)
        counts = counts[:, :, :length, :length]
        if lengths is None:
            return counts
        return tf.where(tf.reshape(lengths <= most, [-1, 1, 1, 1]), 1, counts)

    return _by_length(length, most, lambda: tf.ones([1, 1, length, length], tf.int32), of_blocks)


def _block_counts(num_blocks, last, num_random, random_blocks):
    """How often blocks attend to blocks: int32 [batch or 1, num_heads or 1, blocks, blocks]."""
    numbers = tf.range(num_blocks)
    rows, columns = numbers[:, tf.newaxis], numbers
    is_named = (tf.abs(rows - columns) <= 1) | (columns == 0) | (columns == last)
    if random_blocks is None:
        random = num_random * tf.one_hot([[[0]]], num_blocks, dtype=tf.int32)
    else:
        random = tf.reduce_sum(tf.one_hot(random_blocks, num_blocks, dtype=tf.int32), axis=2)
        random = pad_axis(random, 1, before=1, after=1)
    counts = tf.cast(is_named, tf.int32) + random
    return tf.where((rows == 0) | (rows == last), 1, counts)
