"""Greedy search and sampling: one sequence per row."""

import tensorflow as tf

from etcmodel.generation import settings as generation_settings


def filtered(logits, temperature=1.0, top_k=0, top_p=1.0, least=1):
    """Applies temperature, then top-k, then top-p filtering to logits.

    Args:
        logits: float32 [rows, vocab_size].
        temperature: float. The logits are divided by it.
        top_k: int. Keeps the k most probable tokens; 0 for all. Ties with the last of them are
            kept, too.
        top_p: float. Keeps the most probable tokens up to the one with which they reach this total
            probability (Holtzman et al. 2020); 1 for all.
        least: int. The fewest tokens that are kept.
    Returns:
        float32 [rows, vocab_size].
    """
    logits /= temperature
    if top_k:
        kth = tf.nn.top_k(logits, tf.minimum(max(top_k, least), tf.shape(logits)[1]))[0][:, -1:]
        logits = tf.where(logits < kth, -float("inf"), logits)
    if top_p < 1:
        order = tf.argsort(logits, direction="DESCENDING", stable=True)
        ordered = tf.nn.softmax(tf.gather(logits, order, batch_dims=1))
        before = tf.cumsum(ordered, axis=1, exclusive=True)
        places = tf.argsort(order, stable=True)
        is_left_out = tf.gather(before >= top_p, places, batch_dims=1) & (places >= least)
        logits = tf.where(is_left_out, -float("inf"), logits)
    return logits


def sample(step, cache, num_rows, settings, *, start, eos, pad, with_scores=False):
    """Runs greedy search, or sampling, as one loop until every row has its end token.

    Args:
        step: function of ids, int32 [num_rows], and a cache that returns float32 logits
            [num_rows, vocab_size] and the next cache.
        cache: nest of tensors.
        num_rows: int or int32 scalar.
        settings: `GenerationSettings`, or an object with the same attributes, of which
            `max_length`, `min_length` and `seed` may be scalar tensors.
        start: int, the first token; or a prompt to continue, int32 [inputs, prompt_length], which
            counts in `max_length` and `min_length` and is shorter than `max_length`.
        eos: int, or tuple of int. The end token, or several.
        pad: int. The token after an end token.
        with_scores: bool. Whether to return the scores of all steps.
    Returns:
        dict: `sequences`, int32 [num_rows, max_length], beginning with the start token or the
        prompt; with scores `step_scores`, float32 [num_rows, max_length - prompt_length,
        vocab_size], the processed logits, which are undefined after a row's end. The start token
        alone is a prompt of length 1.
    Raises:
        ValueError: see `settings.checked`.

    >>> from etcmodel import generation
    >>> step = lambda ids, cache: (tf.one_hot(ids + 1, 8), cache)  # It counts.
    >>> settings = generation.GenerationSettings(max_length=7)
    >>> generation.sample(step, (), 2, settings, start=2, eos=6, pad=0)["sequences"].numpy()
    array([[2, 3, 4, 5, 6, 0, 0],
           [2, 3, 4, 5, 6, 0, 0]], dtype=int32)
    """
    max_length = settings.max_length
    prompt, begin, cache = generation_settings.begun(step, cache, start, num_rows)
    sequences = tf.concat([prompt, tf.fill([num_rows, max_length - begin], pad)], axis=1)
    is_done = tf.zeros([num_rows], tf.bool)
    arrays = tf.TensorArray(tf.float32, size=max_length - begin) if with_scores else ()

    def body(length, sequences, is_done, is_scored, cache, arrays):
        logits, cache = step(sequences[:, length - 1], cache)
        scores = generation_settings.processed(logits, sequences, length, settings, eos)
        is_scored &= tf.reduce_all(is_done | generation_settings.are_scored(logits))
        ids = tf.where(is_done, pad, _choose(scores, length, settings))
        is_next = tf.equal(tf.range(max_length), length)
        sequences = tf.where(is_next, ids[:, tf.newaxis], sequences)
        if with_scores:
            arrays = arrays.write(length - begin, scores)
        is_end = generation_settings.is_one_of(ids, eos)
        return length + 1, sequences, is_done | is_end, is_scored, cache, arrays

    length, sequences, _, is_scored, _, arrays = tf.while_loop(
        lambda length, _, is_done, *rest: (length < max_length) & ~tf.reduce_all(is_done),
        body,
        (tf.convert_to_tensor(begin), sequences, is_done, tf.constant(True), cache, arrays),
        parallel_iterations=1,
    )
    outputs = {"sequences": generation_settings.checked(sequences, is_scored)}
    if with_scores:
        scores = arrays.gather(tf.range(length - begin))
        outputs["step_scores"] = tf.transpose(scores, [1, 0, 2])
    return outputs


def perturbed(scores, length, settings):
    """Adds noise to scores, so that the largest is a draw from them (Gumbel 1954).

    The k largest are k draws, none of them twice (Vieira 2014). The noise of a row does not depend
    on how many rows follow it.

    Args:
        scores: float32 [rows, number]. Logits.
        length: int32 scalar. The place of the token, for which there is other noise.
        settings: object with a `seed`.
    """
    uniform = tf.random.stateless_uniform(
        tf.shape(scores), [settings.seed, length], minval=1e-20, maxval=1.0
    )
    return scores - tf.math.log(-tf.math.log(uniform))


def _choose(scores, length, settings):
    if settings.do_sample:
        scores = filtered(scores, settings.temperature, settings.top_k, settings.top_p)
        scores = perturbed(scores, length, settings)
    return tf.argmax(scores, axis=1, output_type=tf.int32)
