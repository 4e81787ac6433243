"""The long and the global input of examples, in a graph, as in `text.arrangement`.

Long: [CLS], the question, [SEP], the text, [SEP]. Global: a token for the whole, for the question
(or for each of its tokens), and for each block that is in.
"""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import features as features_lib
from etcmodel.serving.text import raggeds, sequences, windows
from etcmodel.serving.text.features import CLS, NONE, QUESTION, SEP, WHOLE, Codes, Kept

__all__ = ["Arranger", "Rows"]


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
        num_blocks = raggeds.counts_of(source.examples, num_examples)
        before = tf.cumsum(num_blocks, exclusive=True)
        num_question = raggeds.lengths(source.questions)
        num_fixed = self._num_fixed_global(num_question)
        selection = self._select(_outline(source, num_blocks, before), num_question, num_fixed)
        kept = _kept(source, selection, before, num_fixed)
        has_text = tf.gather(self._has_text(num_blocks), selection.examples)
        questions = tf.gather(source.questions, selection.examples)
        text, owners = sequences.parts(kept.firsts, kept.counts)
        links = self._link_parts(questions, tf.gather(kept.places, owners))
        rows, num_rows = tf.gather(kept.rows, owners), tf.size(selection.examples)
        text, links_of_text = (raggeds.of_rows(x, rows, num_rows) for x in (text, links[1]))
        special = 0 if self.config.whole_token else NONE
        pieces = self._long((CLS, SEP), questions, text, has_text)
        links = self._long((special, special), links[0], links_of_text, has_text)
        codes = Codes(
            pieces=pieces,
            links=links,
            blocks=self._global(questions, raggeds.of_rows(kept.blocks, kept.rows, num_rows)),
            num_before=raggeds.lengths(questions)
            + int(self.config.special_tokens)
            + self._num_question_ends(has_text),
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

    def _num_question_ends(self, has_text):
        """int32 [batch]: how many [SEP] are behind a question."""
        has_ends = self.config.separators * self.config.special_tokens * self.has_question
        return (1 + has_text * (self.config.question_separators - 1)) * has_ends

    def _has_text(self, num_blocks):
        """int32 [batch]: 1 where there is a part for the text."""
        return (
            tf.ones_like(num_blocks) if not self.has_question else tf.cast(num_blocks > 0, tf.int32)
        )

    def _num_fixed_global(self, num_question):
        """int32 [batch]: global tokens in front of those of the text's blocks."""
        own = num_question if self.config.question_globals == "tokens" else 1
        return int(self.config.whole_token) + self.has_question * own + tf.zeros_like(num_question)

    def _select(self, outline, num_question, num_fixed):
        config = self.config
        limits = (config.max_long_len, config.max_global_len)
        long_limit, global_limit = (windows.NO_LIMIT if x is None else x for x in limits)
        has_text = self._has_text(outline.num_blocks)
        num_special = (1 + has_text * config.separators) * config.special_tokens
        pieces = long_limit - num_question - num_special - self._num_question_ends(has_text)
        blocks = global_limit - num_fixed
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
            room = windows.Room(tf.identity(pieces), blocks, config.truncation == "blocks")
        if config.stride is not None:
            return windows.select_windows(outline, room, config.stride)
        if config.truncation == "error":
            room = _checked(outline, room)
        return windows.select(outline, room, config.give_way)

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
        ones = tf.ones_like(has_text)
        has_special = int(self.config.special_tokens)
        has_ends = has_special * self.config.separators
        parts = [raggeds.filled(begin, ones * has_special)]
        if self.has_question:
            parts += [questions, raggeds.filled(end, self._num_question_ends(has_text))]
        return tf.concat([*parts, text, raggeds.filled(end, has_text * has_ends)], axis=1)

    def _global(self, questions, blocks):
        """Ragged int32 [num_rows, (global_len)]: blocks and what stands for the others.

        Tokens of questions that have a global token each stand behind `QUESTION`.
        """
        ones = tf.ones_like(raggeds.lengths(blocks))
        parts = [raggeds.filled(WHOLE, ones * int(self.config.whole_token))]
        if self.has_question and self.config.question_globals == "tokens":
            parts.append(questions.with_flat_values(QUESTION - 1 - questions.flat_values))
        elif self.has_question:
            parts.append(raggeds.filled(QUESTION, ones))
        return tf.concat([*parts, blocks], axis=1)


def _outline(source, num_blocks, before):
    """`windows.Outline` of all examples."""
    counts = source.firsts[1:] - source.firsts[:-1]
    parents = source.parents - tf.gather(before, source.examples)
    parents = tf.where(source.parents < 0, NONE, parents)
    rows = source.examples
    counts, parents = (
        raggeds.of_rows(x, rows, source.num_examples).to_tensor(default)
        for x, default in ((counts, 0), (parents, NONE))
    )
    return windows.Outline(counts, parents, num_blocks)


def _kept(source, selection, before, num_fixed):
    """`Kept` of a `windows.Selection`."""
    where = tf.where(selection.is_in)
    rows, places = tf.unstack(tf.cast(where, tf.int32), 2, axis=1)
    examples = tf.gather(selection.examples, rows)
    blocks = tf.gather(before, examples) + places
    firsts, lasts = (tf.gather_nd(x, where) for x in (selection.firsts, selection.lasts))
    num_kept = raggeds.counts_of(rows, tf.size(selection.examples))
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
    return tf.maximum(raggeds.padded(codes, NONE, tf.shape(like)[1]), NONE)
