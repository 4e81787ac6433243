"""Settings of text generation, and the rules and first tokens that follow from them."""

import dataclasses
import math

import tensorflow as tf

from etcmodel.ops import argument_checks

# A setting that is one token, or several.


def tokens_of(token_id):
    """Returns tokens, given as an int or several, as a tuple of int."""
    return (token_id,) if isinstance(token_id, int) else tuple(token_id)


def is_one_of(ids, token_id):
    """bool, shaped as `ids`: which are one of the tokens, an int or several."""
    return tf.reduce_any(tf.equal(ids[..., tf.newaxis], tokens_of(token_id)), axis=-1)


# A check of the logits, since of NaN every search would still make ids.


NOT_SCORED = (
    "The scores of a generated token are not finite numbers (NaN or infinity): the weights of the "
    "model are not finite, or what it computes is too large for float16."  # Asserts escape quotes.
)


def are_scored(logits):
    """Whether logits [..., vocab_size] can be compared: bool [...].

    Some may be -infinity, as of forbidden tokens, but not all; none is NaN or infinity.
    """
    infinity = float("inf")
    return tf.reduce_all(logits < infinity, -1) & tf.reduce_any(logits > -infinity, -1)


def checked(sequences, is_scored):
    """Returns sequences after a check that all of their tokens had scores.

    Args:
        sequences: int32 [rows, max_length].
        is_scored: bool scalar. Whether all of their logits were `are_scored`.
    Raises:
        ValueError: if they had none; if that is known only when a graph runs,
            `tf.errors.InvalidArgumentError`. Code that XLA compiles cannot raise.
    """
    asserts = []
    argument_checks.check(is_scored, NOT_SCORED, asserts=asserts)
    with tf.control_dependencies(asserts):
        return tf.identity(sequences)


# Rules for the next token: scores of forbidden tokens become -infinity.


def processed(scores, sequences, length, settings, eos_token_id):
    """Applies the rules of the settings to the scores of the next token.

    Args:
        scores: float32 [rows, vocab_size]. Scores of the next token.
        sequences: int32 [rows, max_length]. The tokens so far, `length` of them.
        length: int32 scalar.
        settings: `GenerationSettings`, whose lengths may be scalar tensors.
        eos_token_id: int, or tuple of int.
    Returns:
        float32 [rows, vocab_size].
    """
    ends = tokens_of(eos_token_id)
    tokens = tf.range(tf.shape(scores)[1])
    if settings.repetition_penalty != 1:
        scores = _penalized(scores, sequences, length, settings.repetition_penalty)
    if settings.no_repeat_ngram_size:
        scores = _without_repeated(scores, sequences, length, settings.no_repeat_ngram_size)
    words = [word for word in settings.bad_words_ids if word not in [(end,) for end in ends]]
    if words:
        scores = _without_words(scores, sequences, length, words)
    if tf.is_tensor(settings.min_length) or settings.min_length:
        is_early = (length < settings.min_length) & is_one_of(tokens, ends)
        scores = tf.where(is_early, -float("inf"), scores)
    forced = (
        (settings.forced_bos_token_id, 1),
        (settings.forced_eos_token_id, settings.max_length - 1),
    )
    for token_id, place in forced:
        if token_id is not None:
            only = tf.where(is_one_of(tokens, token_id), 0.0, -float("inf"))
            scores = tf.where(tf.equal(length, place), only, scores)
    return scores


def _penalized(scores, sequences, length, penalty):
    """Makes tokens that have occurred less probable (Keskar et al. 2019, section 4.1)."""
    rows, max_length = tf.shape(sequences)[0], tf.shape(sequences)[1]
    row = tf.repeat(tf.range(rows)[:, tf.newaxis], max_length, axis=1)
    is_there = tf.repeat((tf.range(max_length) < length)[tf.newaxis], rows, axis=0)
    occurred = tf.tensor_scatter_nd_max(
        tf.zeros_like(scores, tf.int32),
        tf.stack([row, sequences], axis=-1),
        tf.cast(is_there, tf.int32),
    )
    penalized = tf.where(scores < 0, scores * penalty, scores / penalty)
    return tf.where(occurred > 0, penalized, scores)


def _without_words(scores, sequences, length, words):
    """Bans the last token of each word whose other tokens are the last ones so far.

    As in Hugging Face's library, a word may be there at the beginning, where nothing precedes it.
    """
    matched = []
    for word in words:
        is_matched = tf.fill([tf.shape(sequences)[0]], len(word) == 1 or length >= len(word))
        for place, token in enumerate(word[:-1]):
            last = tf.gather(sequences, tf.maximum(0, length - len(word) + 1 + place), axis=1)
            is_matched &= tf.equal(last, token)
        matched.append(is_matched)
    matched = tf.stack(matched, axis=1)
    row = tf.repeat(tf.range(tf.shape(scores)[0])[:, tf.newaxis], len(words), axis=1)
    ends = tf.zeros_like(row) + tf.constant([word[-1] for word in words])
    updates = tf.where(matched, -float("inf"), float("inf"))
    return tf.tensor_scatter_nd_min(scores, tf.stack([row, ends], axis=-1), updates)


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


# The first tokens of a sequence: the start token, or a prompt to continue.


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


# The settings.


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """Settings of a search, with the names and defaults of Hugging Face's `generate`.

    Attributes:
        max_length: int. The most tokens of a sequence, including the start token or the prompt.
        min_length: int, at most `max_length`. There is no end token before so many tokens,
            including the start token or the prompt.
        num_beams: int. 1 for greedy search or sampling.
        num_return_sequences: int, at most `num_beams`, except for sampling with one beam. Sequences
            returned per input.
        length_penalty: float. Scores of beams are divided by (tokens without the start token or
            the prompt) to the power of it.
        early_stopping: True: an input is done once it has `num_beams` finished beams; False: once
            no running beam would be better if it ended now; "never": once none can become better.
        no_repeat_ngram_size: int. No n-gram of this size may repeat; 0 for no such rule.
        repetition_penalty: float above 0. Logits, or log probabilities in beam search, of tokens
            that have occurred are divided by it if they are positive, and else multiplied by it; 1
            for no such rule.
        bad_words_ids: tuple of tuples of int. Sequences of tokens that never occur.
        forced_bos_token_id: int, or tuple of int, or None. The token forced after the start token,
            or several, one of which follows it.
        forced_eos_token_id: int, or tuple of int, or None. The token forced at `max_length`;
            likewise.
        do_sample: bool. Whether to draw tokens at random instead of the most probable; with beams,
            twice as many candidates as these are drawn, each once.
        temperature: float. Logits are divided by it before sampling.
        top_k: int. Samples from the k most probable tokens; 0 for all.
        top_p: float. Samples from the fewest tokens with at least this total probability; 1 for
            all.
        seed: int, or int32 scalar in a graph. Equal seeds draw equal tokens.
        decoder_start_token_id: int or None. The first token; None for the config's.
        eos_token_id: int, or tuple of int, or None. The end token, or several of which any ends a
            sequence; likewise.
        pad_token_id: int or None. The token after an end token; likewise.
    Raises:
        ValueError: naming the setting, if one is out of range, or settings contradict each other.

    >>> from etcmodel.generation import GenerationSettings
    >>> settings = GenerationSettings(max_length=64, num_beams=4)
    >>> settings.num_beams, settings.length_penalty
    (4, 1.0)
    """

    max_length: int = 21
    min_length: int = 0
    num_beams: int = 1
    num_return_sequences: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    bad_words_ids: tuple = ()
    forced_bos_token_id: int | tuple[int, ...] | None = None
    forced_eos_token_id: int | tuple[int, ...] | None = None
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    seed: int = 0
    decoder_start_token_id: int | None = None
    eos_token_id: int | tuple[int, ...] | None = None
    pad_token_id: int | None = None

    def __post_init__(self):
        least = {
            "max_length": 2,
            "min_length": 0,
            "num_beams": 1,
            "num_return_sequences": 1,
            "no_repeat_ngram_size": 0,
            "top_k": 0,
        }
        for name, number in least.items():
            if not getattr(self, name) >= number:
                raise ValueError(
                    f"`{name}` must be at least {number}. Received: {getattr(self, name)}"
                )
        if self.min_length > self.max_length:
            raise ValueError(
                "`min_length` must be at most `max_length`, or no sequence could end. Received: "
                f"{self.min_length}, {self.max_length}. Both count the start token, which "
                "`min_new_tokens` and `max_new_tokens` do not."
            )
        if self.early_stopping not in (True, False, "never"):
            raise ValueError(
                "`early_stopping` must be True, False or 'never'. Received: "
                f"{self.early_stopping!r}"
            )
        for name in ("length_penalty", "repetition_penalty", "temperature", "top_p"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(
                    f"`{name}` must be a finite number. Received: {getattr(self, name)}"
                )
        if self.temperature <= 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                "`temperature` must be above 0, and `top_p` above 0 and at most 1. Received: "
                f"{self.temperature}, {self.top_p}"
            )
        if self.repetition_penalty <= 0:
            raise ValueError(
                f"`repetition_penalty` must be above 0. Received: {self.repetition_penalty}"
            )
        if self.num_return_sequences > self.num_beams and (
            self.num_beams > 1 or not self.do_sample
        ):
            raise ValueError(
                "`num_return_sequences` must be at most `num_beams`. Received: "
                f"{self.num_return_sequences}, {self.num_beams}"
            )
        for name in ("forced_bos_token_id", "forced_eos_token_id", "eos_token_id"):
            if getattr(self, name) == ():
                raise ValueError(f"`{name}` must be a token, or several. Received: none")
