"""The first tokens of a sequence: the start token, or a prompt to continue."""

import tensorflow as tf

__all__ = ["begun"]


def begun(step, cache, start, num_rows):
    """Prepares a search: returns the prompt, and a cache that contains it.

    Args:
        step: function of ids, int32 [num_rows], and a cache that returns logits and the next cache.
        cache: nest of tensors, without tokens.
        start: int, the first token; or int32 [inputs, prompt_length], of each input, whose number
            divides `num_rows`.
        num_rows: int or int32 scalar.
    Returns:
        (prompt, length, cache): int32 [num_rows, length]; int or int32 scalar; and the cache of all
        these tokens but the last.
    """
    if not tf.is_tensor(start):
        return tf.fill([num_rows, 1], start), 1, cache
    prompt = tf.repeat(start, num_rows // tf.shape(start)[0], axis=0)
    length = start.shape[1] or tf.shape(start)[1]
    _, cache = tf.while_loop(
        lambda place, _: place < length - 1,
        lambda place, cache: (place + 1, step(prompt[:, place], cache)[1]),
        (tf.constant(0), cache),
        parallel_iterations=1,
    )
    return prompt, length, cache
