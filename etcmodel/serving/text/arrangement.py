"""The long and the global input of examples, in a graph, as in `text.arrangement`.

Long: [CLS], the question, [SEP], the text, [SEP]. Global: a token for the whole, for the question
(or for each of its tokens), and for each block that is in.
"""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import features as features_lib
from etcmodel.serving.text import sequences
from etcmodel.serving.text.features import CLS, NONE, QUESTION, SEP, WHOLE, Codes, Kept
from etcmodel.text import truncation

# Truncation and windows in a graph: the rules of `text.truncation`, for all examples at once.
#
# Blocks are documents, which have no pieces, and sentences, which may be parts of them.


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
        outline: `Outline`.
        room: `Room`.
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
        give_way: of `text.truncation.GIVE_WAY`.
    Returns:
        `Selection`.
    """
    zeros = tf.zeros_like(outline.num_blocks)
    if give_way == truncation.START:
        fill = _fill_from_end(outline, room)
    elif give_way == truncation.LONGEST:
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


# The arrangement.


class Rows(NamedTuple):
    """The inputs of a model, a row for each window, and where they come from.

    Attributes:
        features: dict of name to int32 tensor. What `EtcProcessor` makes.
        examples: int32 [num_rows], in order.
        pieces: int32 [num_rows, long_len]. The piece that a token is, an index in the `Source`;
            -1 for special tokens and padding.
        blocks: int32 [num_rows, global_len]. The block of each global token, likewise; -1 for those
            of the whole and of questions, too.
        first_new: int32 [num_rows]. Tokens of text before this one are in an earlier window, too.
        codes: `features.Codes`. What the tokens are, without padding.
    """

    features: dict
    examples: tf.Tensor
    pieces: tf.Tensor
    blocks: tf.Tensor
    first_new: tf.Tensor
    codes: Codes


class Arranger:
    """Arranges as a processor does, but never packs.

    Args:
        processor: `EtcProcessor`.
        has_question: bool. Whether each example has a question.
    """

    def __init__(self, processor, has_question):
        self.config = processor.config
        self.has_question = has_question
        self._padding = features_lib.Padding(processor)

    def __call__(self, source):
        """`Rows` of a `documents.Source`.

        Raises:
            tf.errors.InvalidArgumentError: if a question does not fit, or a text does not and must
                not be cut.
        """
        num_examples = source.num_examples
        num_blocks = sequences.counts_of(source.examples, num_examples)
        before = tf.cumsum(num_blocks, exclusive=True)
        num_question = sequences.lengths(source.questions)
        num_fixed = self.config.num_fixed_global(int(self.has_question), num_question)
        num_fixed += tf.zeros_like(num_question)
        selection = self._select(_outline(source, num_blocks, before), num_question, num_fixed)
        kept = _kept(source, selection, before, num_fixed)
        has_text = tf.gather(self._has_text(num_blocks), selection.examples)
        questions = tf.gather(source.questions, selection.examples)
        text, owners = sequences.parts(kept.firsts, kept.counts)
        links = self._link_parts(questions, tf.gather(kept.places, owners))
        rows, num_rows = tf.gather(kept.rows, owners), tf.size(selection.examples)
        text, links_of_text = (sequences.of_rows(x, rows, num_rows) for x in (text, links[1]))
        special = 0 if self.config.whole_token else NONE
        num_begin, num_question_ends, _ = self.config.num_special(self.has_question, has_text)
        pieces = self._long((CLS, SEP), questions, text, has_text)
        links = self._long((special, special), links[0], links_of_text, has_text)
        codes = Codes(
            pieces=pieces,
            links=links,
            blocks=self._global(questions, sequences.of_rows(kept.blocks, kept.rows, num_rows)),
            num_before=sequences.lengths(questions) + num_begin + num_question_ends,
            has_both=self.has_question * has_text,
        )
        features = self._padding.features(source, codes)
        first_new = tf.gather(tf.gather(source.firsts, before), selection.examples)
        return Rows(
            features={**features, **self._padding.relations(source, kept, num_rows)},
            examples=selection.examples,
            pieces=_dense(codes.pieces, features["token_ids"]),
            blocks=_dense(codes.blocks, features["global_token_ids"]),
            first_new=first_new + selection.first_new,
            codes=codes,
        )

    def _has_text(self, num_blocks):
        """int32 [batch]: 1 where there is a part for the text."""
        return (
            tf.ones_like(num_blocks) if not self.has_question else tf.cast(num_blocks > 0, tf.int32)
        )

    def _select(self, outline, num_question, num_fixed):
        config = self.config
        num_special = config.num_special(self.has_question, self._has_text(outline.num_blocks))
        pieces = min(config.long_limit, NO_LIMIT) - num_question - sum(num_special)
        blocks = min(config.global_limit, NO_LIMIT) - num_fixed
        fits = tf.debugging.Assert(
            tf.reduce_all((pieces >= 0) & (blocks >= 0)),
            [
                "A `question` is too long: with the special tokens it must fit into "
                f"`max_long_len` {config.max_long_len} and `max_global_len` "
                f"{config.max_global_len}. Tokens of the longest:",
                tf.reduce_max(num_question),
            ],
        )
        with tf.control_dependencies([fits]):
            room = Room(tf.identity(pieces), blocks, config.truncation == "blocks")
        if config.stride is not None:
            return select_windows(outline, room, config.stride)
        if config.truncation == "error":
            room = _checked(outline, room)
        return select(outline, room, config.give_way)

    def _link_parts(self, questions, places):
        """The global token of each token: of questions, ragged [num_rows, …], and of the text."""
        first = int(self.config.whole_token)
        values = tf.fill(tf.shape(questions.flat_values), first)
        if self.config.question_globals == "tokens":
            starts = tf.gather(questions.row_starts(), questions.value_rowids())
            values = first + tf.range(tf.size(values)) - tf.cast(starts, tf.int32)
        return questions.with_flat_values(values), places

    def _long(self, special, questions, text, has_text):
        """Ragged int32 [num_rows, (long_len)]: both parts with what stands for special tokens."""
        begin, end = special
        num_begin, *num_ends = self.config.num_special(self.has_question, has_text)
        question_end, text_end = (sequences.filled(end, number) for number in num_ends)
        parts = [sequences.filled(begin, num_begin + tf.zeros_like(has_text))]
        if self.has_question:
            parts += [questions, question_end]
        return tf.concat([*parts, text, text_end], axis=1)

    def _global(self, questions, blocks):
        """Ragged int32 [num_rows, (global_len)]: blocks and what stands for the others.

        Tokens of questions that have a global token each stand behind `QUESTION`.
        """
        ones = tf.ones_like(sequences.lengths(blocks))
        parts = [sequences.filled(WHOLE, ones * int(self.config.whole_token))]
        if self.has_question and self.config.question_globals == "tokens":
            parts.append(questions.with_flat_values(QUESTION - 1 - questions.flat_values))
        elif self.has_question:
            parts.append(sequences.filled(QUESTION, ones))
        return tf.concat([*parts, blocks], axis=1)


def _outline(source, num_blocks, before):
    """`Outline` of all examples."""
    counts = source.firsts[1:] - source.firsts[:-1]
    parents = source.parents - tf.gather(before, source.examples)
    parents = tf.where(source.parents < 0, NONE, parents)
    rows = source.examples
    counts, parents = (
        sequences.of_rows(x, rows, source.num_examples).to_tensor(default)
        for x, default in ((counts, 0), (parents, NONE))
    )
    return Outline(counts, parents, num_blocks)


def _kept(source, selection, before, num_fixed):
    """`Kept` of a `Selection`."""
    where = tf.where(selection.is_in)
    rows, places = tf.unstack(tf.cast(where, tf.int32), 2, axis=1)
    examples = tf.gather(selection.examples, rows)
    blocks = tf.gather(before, examples) + places
    firsts, lasts = (tf.gather_nd(x, where) for x in (selection.firsts, selection.lasts))
    num_kept = sequences.counts_of(rows, tf.size(selection.examples))
    ranks = tf.range(tf.size(rows)) - tf.gather(tf.cumsum(num_kept, exclusive=True), rows)
    return Kept(
        rows=rows,
        blocks=blocks,
        firsts=tf.gather(source.firsts, blocks) + firsts,
        counts=lasts - firsts,
        places=tf.gather(num_fixed, examples) + ranks,
    )


def _checked(outline, room):
    """The room, once all texts are found to fit."""
    num_pieces = tf.reduce_sum(outline.counts, axis=1)
    fits = (num_pieces <= room.pieces) & (outline.num_blocks <= room.blocks)
    message = (
        "A text is too long and must not be cut (`truncation` 'error'). Most tokens and blocks:"
    )
    found = [tf.reduce_max(num_pieces), tf.reduce_max(outline.num_blocks)]
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(fits), [message, *found])]):
        return room._replace(pieces=tf.identity(room.pieces))


def _dense(codes, like):
    """int32, of the shape of a feature: indices, -1 for all else."""
    return tf.maximum(sequences.padded(codes, NONE, tf.shape(like)[1]), NONE)
