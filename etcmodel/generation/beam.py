"""Beam search with Hugging Face's rules, in one loop."""

from typing import NamedTuple

import tensorflow as tf

from etcmodel.generation import sampling
from etcmodel.generation import settings as generation_settings

_LEAST = -1e9  # The score of absent beams.


class _State(NamedTuple):
    """The beams: running ones, to which `cache` belongs, and finished ones, the best first.

    Attributes:
        length: int32 scalar. Number of tokens of the running beams.
        prompt_length: int32 scalar. How many of these were given.
        running: int32 [batch, beams, max_length].
        running_scores: float32 [batch, beams]. Sums of log probabilities.
        finished: int32 [batch, beams, max_length].
        finished_scores: float32 [batch, beams]. Divided by the length penalty.
        is_finished: bool [batch, beams]. Whether there is a finished beam at that index.
        is_open: bool [batch]. Whether a running beam may still improve the result.
        is_scored: bool scalar. Whether the logits of all open inputs were `settings.are_scored`.
        cache: nest of tensors, by beam.
    """

    length: tf.Tensor
    prompt_length: tf.Tensor
    running: tf.Tensor
    running_scores: tf.Tensor
    finished: tf.Tensor
    finished_scores: tf.Tensor
    is_finished: tf.Tensor
    is_open: tf.Tensor
    is_scored: tf.Tensor
    cache: tuple


def beam_search(step, cache, batch, settings, *, start, eos, pad):
    """Finds the best sequences of each input by beam search.

    Each step considers twice as many candidates as there are beams, or as many more as there are
    further end tokens: those that end are finished, if they are among the best; the others
    continue. With `do_sample`, the candidates are drawn, without replacement, by the probabilities
    of the whole sequences.

    Args:
        step: function of ids, int32 [batch * num_beams], and a cache that returns float32 logits
            [batch * num_beams, vocab_size] and the next cache.
        cache: an object with a method `of_rows(rows)`, and a nest of tensors.
        batch: int or int32 scalar.
        settings: `GenerationSettings`, or an object with the same attributes, of which `num_beams`,
            `max_length`, `min_length` and `length_penalty` may be scalar tensors.
        start: int, the first token; or a prompt to continue, int32 [batch, prompt_length], which
            counts in `max_length` and `min_length` and is shorter than `max_length`.
        eos: int, or tuple of int. The end token, or several.
        pad: int. The token after an end token.
    Returns:
        dict: `sequences`, int32 [batch * num_return_sequences, max_length], grouped by input, the
        best first; `sequences_scores`, float32 [batch * num_return_sequences].
    Raises:
        ValueError: see `settings.checked`.

    >>> from etcmodel import generation
    >>> step = lambda ids, cache: (tf.one_hot(ids + 1, 8) * 9.0, cache)  # It counts.
    >>> cache = type("Cache", (tuple,), {"of_rows": lambda self, rows: self})()
    >>> settings = generation.GenerationSettings(max_length=6, num_beams=2)
    >>> generation.beam_search(step, cache, 1, settings, start=2, eos=6, pad=0)["sequences"].numpy()
    array([[2, 3, 4, 5, 6, 0]], dtype=int32)
    """
    beams, max_length = settings.num_beams, settings.max_length
    prompt, prompt_length, cache = generation_settings.begun(step, cache, start, batch * beams)
    prompt = tf.reshape(prompt, [batch, beams, prompt_length])
    first = tf.concat([prompt, tf.fill([batch, beams, max_length - prompt_length], pad)], axis=2)
    # All beams are equal at first: only one of them counts.
    scores = tf.where(tf.equal(tf.range(beams), 0), 0.0, _LEAST) + tf.zeros([batch, 1])
    state = _State(
        length=tf.convert_to_tensor(prompt_length),
        prompt_length=tf.convert_to_tensor(prompt_length),
        running=first,
        running_scores=scores,
        finished=first,
        finished_scores=tf.fill([batch, beams], _LEAST),
        is_finished=tf.zeros([batch, beams], tf.bool),
        is_open=tf.ones([batch], tf.bool),
        is_scored=tf.constant(True),
        cache=cache,
    )
    (state,) = tf.while_loop(
        lambda state: (state.length < max_length) & tf.reduce_any(state.is_open),
        lambda state: (_advanced(state, step, settings, eos),),
        (state,),
        parallel_iterations=1,
    )
    count = settings.num_return_sequences
    sequences = generation_settings.checked(state.finished[:, :count], state.is_scored)
    scores = tf.reshape(state.finished_scores[:, :count], [-1])
    return {"sequences": tf.reshape(sequences, [-1, max_length]), "sequences_scores": scores}


def _advanced(state, step, settings, eos):
    """The state after one more token."""
    beams, max_length = settings.num_beams, settings.max_length
    batch, length = tf.shape(state.running)[0], state.length
    rows = tf.reshape(state.running, [batch * beams, max_length])
    logits, cache = step(rows[:, length - 1], state.cache)
    are_scored = tf.reshape(generation_settings.are_scored(logits), [batch, beams])
    is_scored = state.is_scored & tf.reduce_all(are_scored | ~state.is_open[:, tf.newaxis])
    scores = generation_settings.processed(tf.nn.log_softmax(logits), rows, length, settings, eos)
    per_beam = 1 + len(generation_settings.tokens_of(eos))
    if settings.do_sample:
        kept = settings.temperature, settings.top_k, settings.top_p, per_beam
        scores = sampling.filtered(scores, *kept)
    vocab_size = tf.shape(scores)[1]
    scores = tf.reshape(scores, [batch, beams, vocab_size]) + state.running_scores[:, :, tf.newaxis]
    scores = tf.reshape(scores, [batch, beams * vocab_size])
    scores, places = _candidates(scores, per_beam * beams, length, settings)
    beam, ids = places // vocab_size, places % vocab_size
    is_next = tf.equal(tf.range(max_length), length)
    candidates = tf.gather(state.running, beam, batch_dims=1)
    candidates = tf.where(is_next, ids[:, :, tf.newaxis], candidates)
    ends = generation_settings.is_one_of(ids, eos) | tf.equal(length + 1, max_length)
    # Finished candidates do not continue.
    running_scores, chosen = tf.nn.top_k(scores + tf.where(ends, _LEAST, 0.0), beams)
    running = tf.gather(candidates, chosen, batch_dims=1)
    beam = tf.gather(beam, chosen, batch_dims=1) + beams * tf.range(batch)[:, tf.newaxis]
    finished = _finished(state, candidates, scores, ends, settings)
    is_open = state.is_open & _may_improve(running_scores, finished, state, settings)
    cache = cache.of_rows(tf.reshape(beam, [batch * beams]))
    found = (running, running_scores, *finished, is_open, is_scored, cache)
    return _State(length + 1, state.prompt_length, *found)


def _candidates(scores, number, length, settings):
    """(scores, places) of the best of [batch, beams * vocab_size], or of drawn ones; sorted."""
    if not settings.do_sample:
        return tf.nn.top_k(scores, number)
    places = tf.nn.top_k(sampling.perturbed(scores, length, settings), number)[1]
    scores, order = tf.nn.top_k(tf.gather(scores, places, batch_dims=1), number)
    return scores, tf.gather(places, order, batch_dims=1)


def _finished(state, candidates, scores, ends, settings):
    """The finished beams, their scores, and which exist: old ones and the best candidates."""
    beams = settings.num_beams
    is_new = ends & (tf.range(tf.shape(ends)[1]) < beams) & state.is_open[:, tf.newaxis]
    if settings.early_stopping is True:
        is_new &= ~tf.reduce_all(state.is_finished, axis=1, keepdims=True)
    tokens = tf.cast(state.length + 1 - state.prompt_length, tf.float32)
    scores /= tokens ** tf.cast(settings.length_penalty, tf.float32)
    scores = tf.where(is_new, scores, _LEAST)
    scores, best = tf.nn.top_k(tf.concat([state.finished_scores, scores], 1), beams)
    sequences = tf.concat([state.finished, candidates], axis=1)
    are = tf.concat([state.is_finished, is_new], axis=1)
    return tf.gather(sequences, best, batch_dims=1), scores, tf.gather(are, best, batch_dims=1)


def _may_improve(running_scores, finished, state, settings):
    """Whether a running beam of each input may become better than the worst finished one."""
    _, scores, is_finished = finished
    if settings.early_stopping is True:
        return ~tf.reduce_all(is_finished, axis=1)
    tokens = tf.cast(state.length + 1 - state.prompt_length, tf.float32)
    penalty = tf.cast(settings.length_penalty, tf.float32)
    if settings.early_stopping == "never":
        most = tf.cast(settings.max_length - state.prompt_length, tf.float32)
        tokens = tf.where(penalty > 0, most, tokens)
    best = running_scores[:, 0] / tokens**penalty
    worst = tf.reduce_min(tf.where(is_finished, scores, _LEAST), axis=1)
    return best > worst
