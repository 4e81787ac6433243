"""Sentences in a graph: the splitter 'simple' of `text.sentence_splitting`."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import code_points as codes
from etcmodel.serving.text import sequences

__all__ = ["SPLITTER", "Sentences", "split", "whole"]

SPLITTER = "simple"  # The name in an export's settings.

_ENDS = tuple(map(ord, ".!?"))


class Sentences(NamedTuple):
    """Sentences of several texts, one after the other.

    Attributes:
        code_points: ragged int32 [num_sentences, (num_chars)].
        texts, starts: int32 [num_sentences]. Which text each is from, and its first character.
    """

    code_points: tf.RaggedTensor
    texts: tf.Tensor
    starts: tf.Tensor


def split(texts):
    """Splits texts at the white space behind `.`, `!` and `?`; other white space around is dropped.

    Args:
        texts: ragged int32 code points [num_texts, (num_chars)].
    Returns:
        `Sentences`, none of which is blank.
    """
    chars, text_of = texts.flat_values, tf.cast(texts.value_rowids(), tf.int32)
    is_text = ~codes.has(codes.properties()(chars), codes.SPACE)
    text_before = sequences.previous_true(tf.concat([is_text, [False]], 0))
    before = tf.maximum(text_before[:-1], 0)
    is_first = (text_before[:-1] < 0) | tf.not_equal(tf.gather(text_of, before), text_of)
    is_end = tf.reduce_any(tf.equal(tf.gather(chars, before)[:, tf.newaxis], _ENDS), axis=1)
    is_after_space = before < tf.range(tf.size(chars)) - 1
    starts = tf.cast(tf.where(is_text & (is_first | (is_end & is_after_space)))[:, 0], tf.int32)
    # Each ends with the last character before the next one, or before the end.
    ends = tf.gather(text_before, tf.concat([starts[1:], tf.shape(chars)], 0)) + 1
    return _sentences(texts, starts, ends - starts)


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
