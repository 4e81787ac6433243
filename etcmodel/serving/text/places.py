"""From tokens back to the characters of texts, in a graph."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import sequences

__all__ = ["Places", "substrings", "texts_of", "to_characters"]

_NONE = -1


class Places(NamedTuple):
    """Characters of texts, int32 of any shape; -1 all where there are none.

    Attributes:
        texts: Which text.
        starts, ends: Its characters `[start, end)`.
    """

    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def texts_of(source, rows):
    """int32 [num_rows, long_len]: which text each token is from; -1 for questions, too.

    Args:
        source: `documents.Source`.
        rows: `arrangement.Rows`.
    """
    texts = tf.concat([source.texts, [_NONE]], 0)  # At least one to choose from.
    return tf.where(rows.pieces >= 0, tf.gather(texts, tf.maximum(rows.pieces, 0)), _NONE)


def to_characters(source, rows, spans):
    """`Places` of `answers.Spans`, as `text.encoding.Encoding.char_span` has them."""
    there = spans.rows >= 0
    row = tf.where(there, spans.rows, 0)
    begin = tf.gather(tf.pad(rows.pieces, [[0, 0], [0, 1]]), row)
    rank = row.shape.rank
    first, last = (
        tf.maximum(tf.gather(begin, tf.maximum(x, 0), batch_dims=rank), 0)
        for x in (spans.firsts, spans.lasts)
    )
    values = (source.starts, source.ends, source.texts)
    starts, ends, texts = (tf.concat([x, [0]], 0) for x in values)
    # A span's pieces follow one another; their characters need not be in order.
    pieces, spans_of = sequences.parts(_flat(first), _flat(last - first + 1))
    size = tf.size(first)
    start = tf.math.unsorted_segment_min(tf.gather(starts, pieces), spans_of, size)
    end = tf.math.unsorted_segment_max(tf.gather(ends, pieces), spans_of, size)
    start, end = (tf.reshape(x, tf.shape(first)) for x in (start, end))
    return Places(*(tf.where(there, x, _NONE) for x in (tf.gather(texts, first), start, end)))


def substrings(texts, places):
    """The strings at `Places` of texts, ragged code points; "" where there are none."""
    there = places.texts >= 0
    text = _flat(tf.where(there, places.texts, 0))
    counts = _flat(tf.where(there, places.ends - places.starts, 0))
    starts = tf.gather(tf.concat([texts.row_starts(), [0]], 0), text)
    chars, _ = sequences.parts(tf.cast(starts, tf.int32) + _flat(places.starts), counts)
    found = tf.RaggedTensor.from_row_lengths(
        tf.gather(texts.flat_values, chars), tf.cast(counts, tf.int64)
    )
    return tf.reshape(tf.strings.unicode_encode(found, "UTF-8"), tf.shape(places.texts))


def _flat(tensor):
    return tf.reshape(tensor, [-1])
