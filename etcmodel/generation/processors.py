"""Rules for the next token: scores of forbidden tokens become -infinity."""

import tensorflow as tf

__all__ = ["processed"]


def processed(scores, sequences, length, settings, eos_token_id):
    """Applies the rules of the settings to the scores of the next token.

    Args:
        scores: float32 [rows, vocab_size]. Scores of the next token.
        sequences: int32 [rows, max_length]. The tokens so far, `length` of them.
        length: int32 scalar.
        settings: `GenerationSettings`, whose lengths may be scalar tensors.
        eos_token_id: int.
    Returns:
        float32 [rows, vocab_size].
    """
    tokens = tf.range(tf.shape(scores)[1])
    if settings.no_repeat_ngram_size:
        scores = _without_repeated(scores, sequences, length, settings.no_repeat_ngram_size)
    if tf.is_tensor(settings.min_length) or settings.min_length:
        is_early = (length < settings.min_length) & tf.equal(tokens, eos_token_id)
        scores = tf.where(is_early, -float("inf"), scores)
    forced = (
        (settings.forced_bos_token_id, 1),
        (settings.forced_eos_token_id, settings.max_length - 1),
    )
    for token_id, place in forced:
        if token_id is not None:
            only = tf.where(tf.equal(tokens, token_id), 0.0, -float("inf"))
            scores = tf.where(tf.equal(length, place), only, scores)
    return scores


def _without_repeated(scores, sequences, length, size):
    """Bans tokens that would complete an n-gram that has already occurred."""
    rows, max_length = tf.shape(sequences)[0], tf.shape(sequences)[1]
    starts = tf.range(tf.maximum(0, max_length - size + 1))
    is_repeated = tf.repeat((starts + size - 1 < length)[tf.newaxis], rows, axis=0)
    for place in range(size - 1):
        last = tf.gather(sequences, tf.maximum(0, length - size + 1 + place), axis=1)
        here = tf.gather(sequences, starts + place, axis=1)
        is_repeated &= tf.equal(here, last[:, tf.newaxis])
    ends = tf.gather(sequences, starts + size - 1, axis=1)
    row = tf.repeat(tf.range(rows)[:, tf.newaxis], tf.shape(starts)[0], axis=1)
    updates = tf.where(is_repeated, -float("inf"), float("inf"))
    return tf.tensor_scatter_nd_min(scores, tf.stack([row, ends], axis=-1), updates)
