"""The loss: one softmax over all n-grams of a page (paper, appendix, "OpenKP").

Difference from the release (`release_compatible=True` reproduces it): the smoothing mass goes to
the n-grams of the page (there: also to those of the padding, whose logits are about -10,000, which
adds up to 1 to the loss without any information) and may be 0 (there: at least 1e-6), and a page
without labels adds nothing (there: all its n-grams are labels).
"""

import tensorflow as tf

from etcmodel.ops import ngrams
from etcmodel.ops.ngrams import MASKED_LOGIT, cross_entropy, ngram_mask

from .config import LABEL_OCCURRENCES

__all__ = [
    "LABEL_OCCURRENCES",
    "MASKED_LOGIT",
    "cross_entropy",
    "loss",
    "max_over_occurrences",
    "ngram_labels",
    "ngram_mask",
]

_RELEASE_MIN_SMOOTHING_MASS = 1e-6


def ngram_labels(
    label_start_idx,
    label_phrase_len,
    allowed,
    additive_smoothing_mass,
    *,
    release_compatible=False,
):
    """The probabilities to learn: see `ops.ngrams.ngram_labels`.

    Args:
        label_start_idx, label_phrase_len, allowed, additive_smoothing_mass: as there.
        release_compatible: bool. As in the release: all n-grams share the mass, which is at least
            1e-6.
    Returns:
        As there.
    """
    if release_compatible:
        allowed = tf.ones_like(allowed)
        additive_smoothing_mass = max(additive_smoothing_mass, _RELEASE_MIN_SMOOTHING_MASS)
    return ngrams.ngram_labels(label_start_idx, label_phrase_len, allowed, additive_smoothing_mass)


def max_over_occurrences(ngram_logits, first_occurrence):
    """The highest logit of all occurrences of each n-gram, at its first occurrence.

    Args:
        ngram_logits: float [batch, kp_max_length, long_len].
        first_occurrence: int [batch, kp_max_length, long_len]: see `phrases.first_occurrences`.
    Returns:
        (logits, is_first): float and bool [batch, kp_max_length, long_len]. The logits of places
        that are not the first are those of padding.
    """
    shape = tf.shape(ngram_logits)
    num_places = shape[2]
    rows = tf.range(shape[0] * shape[1]) * num_places
    segments = tf.reshape(rows, [shape[0], shape[1], 1]) + first_occurrence
    best = tf.math.unsorted_segment_max(ngram_logits, segments, tf.size(ngram_logits))
    is_first = tf.equal(first_occurrence, tf.range(num_places))
    best = tf.where(is_first, tf.reshape(best, shape), MASKED_LOGIT)
    return best, is_first


def loss(
    outputs,
    features,
    *,
    label_occurrences="first",
    additive_smoothing_mass=1e-4,
    release_compatible=False,
):
    """Mean over the batch of the cross entropy between n-grams and labels.

    Args:
        outputs: of `OpenKpModel`.
        features: dict of int32 `label_start_idx`, `label_phrase_len` [batch, num_labels],
            `long_word_input_mask` [batch, long_len]; for 'max', `long_word_first_occurrence`
            [batch, kp_max_length * long_len].
        label_occurrences: 'first' (a key phrase is its first occurrence), or 'max' (a phrase has
            the highest logit of all its occurrences, and the softmax is over distinct phrases).
        additive_smoothing_mass: float. See `ngram_labels`.
        release_compatible: bool. Reproduce the bugs of the release; only with 'first'.
    Returns:
        dict of a float32 scalar: "loss".
    Raises:
        ValueError: if `label_occurrences` is unknown, or 'max' is combined with
            `release_compatible`.
    """
    if label_occurrences not in LABEL_OCCURRENCES:
        raise ValueError(
            f"`label_occurrences` must be one of {LABEL_OCCURRENCES}. "
            f"Received: {label_occurrences!r}"
        )
    logits = outputs["ngram_logits"]  # [batch, kp_max_length, long_len]
    allowed = ngram_mask(features["long_word_input_mask"], logits.shape[1])
    if label_occurrences == "max":
        if release_compatible:
            raise ValueError("The release has no max loss: `release_compatible` must be False.")
        first = tf.reshape(features["long_word_first_occurrence"], tf.shape(logits))
        logits, is_first = max_over_occurrences(logits, first)
        allowed &= is_first
    labels, has_labels = ngram_labels(
        features["label_start_idx"],
        features["label_phrase_len"],
        allowed,
        additive_smoothing_mass,
        release_compatible=release_compatible,
    )
    losses = cross_entropy(labels, logits)
    if not release_compatible:
        losses = tf.where(has_labels, losses, 0.0)
    return {"loss": tf.reduce_mean(losses)}
