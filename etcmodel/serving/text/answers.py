"""From logits to answers, in a graph: labels, spans of text, sentences, phrases.

An example may be split into several windows, each a row. Their outputs are combined by these rules:

- labels: the mean of the windows' probabilities;
- spans: each logit counts as what it is above that of the window's first token, as in
  `text.answers`; then one softmax over all spans of all windows;
- types of answers: there is none only if no window has one. "no_answer" has the least of its
  probabilities, and the other types share the rest in proportion to the highest of theirs;
- sentences: the highest probability;
- phrases: one softmax over all phrases of all windows, those that a window repeats left out.

Of one window these are the model's own softmax and sigmoid.
"""

from typing import NamedTuple

import tensorflow as tf

__all__ = [
    "NO_ANSWER",
    "SPAN",
    "Spans",
    "best_spans",
    "join_labels",
    "join_sentences",
    "join_types",
    "top_phrases",
]

SPAN, NO_ANSWER = "span", "no_answer"
_NONE = -1


class Spans(NamedTuple):
    """Spans of tokens; missing spans have probability 0 and -1 everywhere else.

    Attributes:
        rows, firsts, lasts: int32 [batch] or [batch, num_spans]. Row, first and last token.
        probabilities: float32, likewise.
    """

    rows: tf.Tensor
    firsts: tf.Tensor
    lasts: tf.Tensor
    probabilities: tf.Tensor


def best_spans(begin, end, texts, examples, num_examples, max_tokens):
    """The best span of each example, that of `text.answers.best_answer`.

    Args:
        begin, end: float [num_rows, long_len]. Logits.
        texts: int32 [num_rows, long_len]. Which text each token is from; -1 where no answer is
            allowed.
        examples: int32 [num_rows]. The example of each row, in order.
        num_examples: int32 scalar.
        max_tokens: int. Maximum length of an answer in tokens.
    Returns:
        `Spans` [batch].
    """
    begin, end = begin - begin[:, :1], end - end[:, :1]
    length = tf.shape(texts)[1]
    offsets = tf.range(max_tokens)[:, tf.newaxis]
    places = tf.range(length) + offsets  # [max_tokens, long_len], by length, then first token.
    inside = places < length
    places = tf.minimum(places, length - 1)
    first_texts = texts[:, tf.newaxis]
    is_span = inside & (first_texts >= 0) & tf.equal(first_texts, tf.gather(texts, places, axis=1))
    logits = begin[:, tf.newaxis] + tf.gather(end, places, axis=1)
    logits = tf.where(is_span, logits, logits.dtype.min)
    logits = tf.reshape(logits, [-1, max_tokens * length])
    log_sums = _joined_log_sums(logits, examples, num_examples)
    row_best = tf.reduce_max(logits, axis=1)
    best = tf.math.unsorted_segment_max(row_best, examples, num_examples)
    is_best = tf.equal(row_best, tf.gather(best, examples))
    numbers = tf.range(tf.size(examples))
    row = tf.where(is_best, numbers, tf.size(numbers))
    row = tf.math.unsorted_segment_min(row, examples, num_examples)
    flat = tf.gather(tf.argmax(logits, axis=1, output_type=tf.int32), row)
    first = flat % length
    there = best > logits.dtype.min
    found = (tf.where(there, x, _NONE) for x in (row, first, first + flat // length))
    return Spans(*found, tf.where(there, tf.exp(best - log_sums), 0.0))


def _joined_log_sums(logits, examples, num_examples):
    """float [batch]: the logarithm of the sum of exponents over all rows of an example."""
    of_rows = tf.reduce_logsumexp(logits, axis=1)
    highest = tf.math.unsorted_segment_max(of_rows, examples, num_examples)
    shares = tf.exp(of_rows - tf.gather(highest, examples))
    return highest + tf.math.log(tf.math.unsorted_segment_sum(shares, examples, num_examples))


def join_labels(probabilities, examples, num_examples):
    """float32 [batch, num_labels] of [num_rows, num_labels]: see above."""
    return tf.math.unsorted_segment_mean(probabilities, examples, num_examples)


def join_types(logits, answer_types, examples, num_examples):
    """Probabilities of types of answers: see above.

    Args:
        logits: float [num_rows, num_types].
        answer_types: sequence of str.
        examples, num_examples: as in `best_spans`.
    Returns:
        float [batch, num_types].
    """
    probabilities = tf.nn.softmax(logits)
    highest = tf.math.unsorted_segment_max(probabilities, examples, num_examples)
    is_none = tf.constant([kind == NO_ANSWER for kind in answer_types])
    others = tf.where(is_none, 0.0, highest)
    least = tf.math.unsorted_segment_min(probabilities, examples, num_examples)
    none = tf.where(is_none, least, 0.0)
    rest = 1.0 - tf.reduce_sum(none, axis=1, keepdims=True)
    return none + rest * tf.math.divide_no_nan(others, tf.reduce_sum(others, 1, keepdims=True))


def join_sentences(probabilities, blocks, is_block):
    """float32 [num_blocks]: the highest of each block, 0 where no window has it.

    Args:
        probabilities: float [num_rows, global_len].
        blocks: int32 [num_rows, global_len]. The block of each global token, or -1.
        is_block: any [num_blocks]. What there is one of for each block.
    """
    flat = tf.reshape(probabilities, [-1])
    highest = tf.math.unsorted_segment_max(flat, tf.reshape(blocks, [-1]), tf.size(is_block))
    return tf.maximum(highest, 0.0)


def top_phrases(logits, texts, is_new, examples, num_phrases):
    """The best phrases of each example.

    Args:
        logits: float [num_rows, max_tokens, long_len], by number of tokens and first one.
        texts: int32 [num_rows, long_len]. Which text each token is from; -1 where no phrase is.
        is_new: bool [num_rows, long_len]. Tokens that are in no earlier window.
        examples: int32 [num_rows], in order, each at least once.
        num_phrases: int.
    Returns:
        `Spans` [batch, num_phrases], the most probable first.
    """
    num_rows, max_tokens, length = tf.unstack(tf.shape(logits))
    places = tf.range(length) + tf.range(max_tokens)[:, tf.newaxis]
    inside = places < length
    places = tf.minimum(places, length - 1)
    first_texts = texts[:, tf.newaxis]
    allowed = inside & (first_texts >= 0) & tf.gather(is_new, places, axis=1)
    allowed &= tf.equal(first_texts, tf.gather(texts, places, axis=1))
    logits = tf.where(allowed, logits, logits.dtype.min)
    of_rows = tf.reshape(logits, [num_rows, max_tokens * length])
    grouped = tf.RaggedTensor.from_value_rowids(tf.range(num_rows), tf.cast(examples, tf.int64))
    rows = grouped.to_tensor(_NONE)  # [batch, most windows]
    flat = tf.gather(of_rows, tf.maximum(rows, 0))
    flat = tf.where((rows >= 0)[:, :, tf.newaxis], flat, logits.dtype.min)
    flat = tf.reshape(flat, [tf.shape(rows)[0], -1])
    flat = tf.pad(flat, [[0, 0], [0, num_phrases]], constant_values=logits.dtype.min)
    best, found = tf.math.top_k(flat, num_phrases)
    there = best > logits.dtype.min
    window = tf.where(there, found // (max_tokens * length), 0)
    row = tf.gather(rows, window, batch_dims=1)
    first, extra = found % length, found % (max_tokens * length) // length
    probabilities = tf.exp(best - tf.reduce_logsumexp(flat, axis=1, keepdims=True))
    found = (tf.where(there, x, _NONE) for x in (row, first, first + extra))
    return Spans(*found, tf.where(there, probabilities, 0.0))
