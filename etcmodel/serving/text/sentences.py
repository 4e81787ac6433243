"""Sentences in a graph: the splitters of `text.sentence_splitting` that are rules of characters."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import code_points as codes
from etcmodel.serving.text import sequences
from etcmodel.text import sentence_splitting

__all__ = ["SPLITTERS", "Sentences", "split", "splitter_of", "whole"]

SPLITTERS = ("multilingual", "simple")


class Sentences(NamedTuple):
    """Sentences of several texts, one after the other.

    Attributes:
        code_points: ragged int32 [num_sentences, (num_chars)].
        texts, starts: int32 [num_sentences]. Which text each is from, and its first character.
    """

    code_points: tf.RaggedTensor
    texts: tf.Tensor
    starts: tf.Tensor


def splitter_of(config):
    """The splitter of an export: that of its `ProcessorConfig`, or 'simple' in its place."""
    return config.sentence_splitter if config.sentence_splitter in SPLITTERS else "simple"


def split(texts, splitter):
    """Splits texts as `text.sentence_splitting.sentence_splitter` does.

    Args:
        texts: ragged int32 code points [num_texts, (num_chars)].
        splitter: one of `SPLITTERS`.
    Returns:
        `Sentences`, none of which is blank.
    """
    chars, text_of = texts.flat_values, tf.cast(texts.value_rowids(), tf.int32)
    is_text = ~codes.has(codes.properties()(chars), codes.SPACE)
    text_before = sequences.previous_true(tf.concat([is_text, [False]], 0))
    before = tf.maximum(text_before[:-1], 0)
    is_first = (text_before[:-1] < 0) | tf.not_equal(tf.gather(text_of, before), text_of)
    is_end = _is_of(tf.gather(chars, before), sentence_splitting.ENDS)
    is_after_space = before < tf.range(tf.size(chars)) - 1
    begins = is_first | (is_end & is_after_space)
    if splitter == "multilingual":
        begins |= _is_after_end(chars, text_of, before, is_after_space)
    starts = tf.cast(tf.where(is_text & begins)[:, 0], tf.int32)
    # Each ends with the last character before the next one, or before the end.
    ends = tf.gather(text_before, tf.concat([starts[1:], tf.shape(chars)], 0)) + 1
    return _sentences(texts, starts, ends - starts)


def _is_after_end(chars, text_of, before, is_after_space):
    """bool: before a character is an end that needs no white space, with all that goes with it."""
    is_end = _is_of(chars, sentence_splitting.ENDS_WITHOUT_SPACE)
    goes_along = is_end | _is_of(chars, sentence_splitting.ENDS + sentence_splitting.CLOSING)
    # Of the characters up to each: the latest end, and the latest one that does not go along.
    latest = [tf.concat([x, [False]], 0) for x in (is_end, ~goes_along)]
    end, other = (tf.gather(sequences.previous_true(flags), before + 1) for flags in latest)
    is_same_text = tf.equal(tf.gather(text_of, tf.maximum(end, 0)), text_of)
    return (end > other) & is_same_text & (is_after_space | ~goes_along)


def _is_of(chars, characters):
    """bool: whether code points are of some characters, a str."""
    return tf.reduce_any(tf.equal(chars[:, tf.newaxis], [*map(ord, characters)]), axis=1)


def whole(texts):
    """As `split`, but each text that is not blank is one sentence, white space included."""
    is_text = ~codes.has(codes.properties()(texts.flat_values), codes.SPACE)
    has_text = tf.reduce_any(texts.with_flat_values(is_text), axis=1)
    lengths = tf.where(has_text, texts.row_lengths(), 0)
    kept = tf.where(lengths > 0)[:, 0]
    starts = tf.cast(tf.gather(texts.row_starts(), kept), tf.int32)
    return _sentences(texts, starts, tf.cast(tf.gather(lengths, kept), tf.int32))


def _sentences(texts, starts, counts):
    """`Sentences` of these many characters from the given places on, among all characters."""
    text_of = tf.gather(tf.cast(texts.value_rowids(), tf.int32), starts)
    places, _ = sequences.parts(starts, counts)
    chars = tf.gather(texts.flat_values, places)
    found = tf.RaggedTensor.from_row_lengths(chars, tf.cast(counts, tf.int64))
    shifts = tf.gather(tf.cast(texts.row_starts(), tf.int32), text_of)
    return Sentences(found, text_of, starts - shifts)
