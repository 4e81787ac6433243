"""From tokens back to the characters of texts, in a graph."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.serving.text import sequences, tokenizers
from etcmodel.text import answers

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
    """`Places` of `export.Spans`, as `text.encoding.Encoding.char_span` has them."""
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


def widened(texts, places):
    """`Places` with all of the words in which they begin and end: see `text.answers.widened`.

    Args:
        texts: ragged int32 code points [num_texts, (num_chars)].
        places: `Places`.
    """
    begins = ~_joined(texts)
    there = places.texts >= 0
    offsets = tf.concat([tf.cast(texts.row_starts(), tf.int32), [0]], 0)
    offset = tf.gather(offsets, tf.where(there, places.texts, 0))
    start, end = (offset + tf.where(there, x, 0) for x in (places.starts, places.ends))
    before, after = sequences.previous_true(begins), sequences.next_true(begins)
    start = tf.where(tf.gather(begins, start), start, tf.gather(before, start))
    end = tf.where(tf.gather(begins, end), end, tf.gather(after, end))
    return Places(places.texts, *(tf.where(there, x - offset, _NONE) for x in (start, end)))


def _joined(texts):
    """bool [num_chars + 1]: which characters of all texts are of one word with those before."""
    chars, rows = texts.flat_values, texts.value_rowids()
    held = tokenizers.properties()(chars)
    of_word = tokenizers.has(held, tokenizers.OF_WORD)
    is_digit = tokenizers.has(held, tokenizers.DIGIT)
    is_between = is_digit[:-2] & is_digit[2:] & tf.equal(rows[:-2], rows[2:])
    is_separator = tf.reduce_any([tf.equal(chars, ord(x)) for x in answers.SEPARATORS], axis=0)
    of_word |= is_separator & tf.pad(is_between, [[1, 1]])[: tf.size(chars)]
    joined = of_word[:-1] & of_word[1:] & tf.equal(rows[:-1], rows[1:])
    return tf.pad(joined, [[1, 1]])[: tf.size(chars) + 1]


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
