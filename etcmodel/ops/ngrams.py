"""N-grams of words as key phrases, their labels and their loss (paper, appendix, "OpenKP")."""

import tensorflow as tf

MASKED_LOGIT = -10000.0  # The logit of n-grams that do not exist.


def sum_words(long_embeddings, long_word_idx, long_input_mask):
    """Sums the token embeddings of each word.

    Args:
        long_embeddings: float [batch, long_len, hidden_size].
        long_word_idx: int [batch, long_len]. The word of each token, from 0.
        long_input_mask: int [batch, long_len]. 0 for padding.
    Returns:
        float [batch, long_len, hidden_size], by word; 0 beyond the last word.
    """
    shape = tf.shape(long_embeddings)
    kept = long_embeddings * tf.cast(long_input_mask, long_embeddings.dtype)[:, :, tf.newaxis]
    segments = tf.range(shape[0])[:, tf.newaxis] * shape[1] + long_word_idx
    sums = tf.math.unsorted_segment_sum(kept, segments, shape[0] * shape[1])
    return tf.ensure_shape(tf.reshape(sums, shape), long_embeddings.shape)


def ngram_mask(word_mask, kp_max_length):
    """Marks the n-grams that lie within the page.

    Args:
        word_mask: int or bool [batch, long_len]. 1 for words, which come first.
        kp_max_length: int.
    Returns:
        bool [batch, kp_max_length, long_len].
    """
    num_words = tf.reduce_sum(tf.cast(word_mask, tf.int32), axis=-1)[:, tf.newaxis, tf.newaxis]
    ends = tf.range(tf.shape(word_mask)[1]) + tf.range(1, kp_max_length + 1)[:, tf.newaxis]
    return ends <= num_words


def best_ngrams(ngram_logits, mask, max_positions):
    """Finds the n-grams with the highest logits.

    Args:
        ngram_logits: float [batch, kp_max_length, long_len]. By number of words and first word.
        mask: bool [batch, kp_max_length, long_len]. Which n-grams exist.
        max_positions: int.
    Returns:
        dict of [batch, k], the highest logit first: float `top_logits`, int32 `top_start_idx` (the
        first word) and int32 `top_phrase_len` (the number of words; 0 for an n-gram that does not
        exist). k is `max_positions`, or the number of possible n-grams if that is smaller.
    """
    shape = tf.shape(ngram_logits)
    num_places = shape[2]
    flat_shape = [shape[0], shape[1] * num_places]
    num_best = tf.minimum(max_positions, flat_shape[1])
    top_logits, places = tf.math.top_k(tf.reshape(ngram_logits, flat_shape), num_best)
    is_real = tf.gather(tf.reshape(mask, flat_shape), places, batch_dims=1)
    return {
        "top_logits": top_logits,
        "top_start_idx": places % num_places,
        "top_phrase_len": tf.where(is_real, places // num_places + 1, 0),
    }


def ngram_labels(label_start_idx, label_phrase_len, allowed, additive_smoothing_mass):
    """Computes the target probabilities of n-grams.

    Args:
        label_start_idx: int [batch, num_labels]. First word of each key phrase; -1 for none.
        label_phrase_len: int [batch, num_labels]. Its number of words; -1 for none. A phrase that
            starts at `long_len` or later, or is longer than `kp_max_length`, is ignored.
        allowed: bool [batch, kp_max_length, long_len]. The n-grams that share the smoothing mass.
        additive_smoothing_mass: float. The probability that they share, before everything is scaled
            to a sum of 1; the labels share 1.
    Returns:
        (probabilities, has_labels): float32 [batch, kp_max_length, long_len], and bool [batch].
    """
    hits = _hits(label_start_idx, label_phrase_len, tf.shape(allowed))
    total = _sum_of_page(hits)
    allowed = tf.cast(allowed, tf.float32)
    share = additive_smoothing_mass * allowed / tf.maximum(_sum_of_page(allowed), 1.0)
    labels = tf.math.divide_no_nan(hits, total) + share
    labels = tf.math.divide_no_nan(labels, _sum_of_page(labels))
    return labels, total[:, 0, 0] > 0


def _hits(label_start_idx, label_phrase_len, shape):
    """The number of labels of each n-gram: float32 [batch, kp_max_length, long_len]."""
    kp_max_length, num_places = shape[1], shape[2]
    is_label = (
        (label_start_idx >= 0)
        & (label_start_idx < num_places)
        & (label_phrase_len >= 1)
        & (label_phrase_len <= kp_max_length)
    )
    place = (label_phrase_len - 1) * num_places + label_start_idx
    one_hot = tf.one_hot(tf.where(is_label, place, -1), kp_max_length * num_places)
    return tf.reshape(tf.reduce_sum(one_hot, axis=1), shape)


def _sum_of_page(values):
    return tf.reduce_sum(values, axis=[1, 2], keepdims=True)


def cross_entropy(labels, logits):
    """Computes the cross entropy of each page: one softmax over all of its n-grams.

    Args:
        labels: float32 [batch, kp_max_length, long_len]. Probabilities.
        logits: float32 [batch, kp_max_length, long_len].
    Returns:
        float32 [batch].
    """
    shape = tf.shape(logits)
    flat_shape = [shape[0], shape[1] * shape[2]]
    return tf.nn.softmax_cross_entropy_with_logits(
        labels=tf.reshape(labels, flat_shape), logits=tf.reshape(logits, flat_shape)
    )
