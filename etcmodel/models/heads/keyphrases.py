"""Extraction of key phrases."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import ngrams
from etcmodel.models.heads import base
from etcmodel.ops import argument_checks
from etcmodel.ops import ngrams as ngrams_ops

__all__ = ["EtcForKeyphraseExtraction", "KeyphraseCrossentropy", "KeyphraseHits", "best_phrases"]

_SMOOTHING_MASS = 1e-4


@base.register_head
class EtcForKeyphraseExtraction(base.HeadModel):
    """Extracts key phrases: scores all n-grams of words (paper, appendix, "OpenKP").

    Labels are int [batch, num_phrases, 2]: the first word and the number of words of each key
    phrase; -1, -1 is padding.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        max_words: int. The most words in a phrase.
        **kwargs: of `HeadModel`.
    Call args:
        features: see `HeadModel`. Also int [batch, long_len] `word_ids`, the index of each token's
            word, from 0 without gaps, or -1 for tokens outside of words. By default each token is a
            word.
    Returns:
        float32 [batch, max_words, long_len]. Logits by number of words (minus 1) and first word;
        -10,000 for n-grams beyond the last word.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> model = etcmodel.EtcForKeyphraseExtraction(config, max_words=3)
    >>> model([[2, 7, 8, 3]]).shape
    TensorShape([1, 3, 4])
    """

    head_type = "keyphrase_extraction"
    at_least_1 = ("max_words",)
    extra_axes = {"word_ids": "batch long_len"}

    def __init__(self, encoder, *, max_words: int = 5, **kwargs):
        super().__init__(encoder, own={"max_words": max_words}, **kwargs)

    def make_head(self):
        config = self.encoder.config
        self.scorer = ngrams.NgramScorer(
            config.hidden_size,
            self.max_words,
            dropout_rate=self.dropout.rate,
            initializer_range=config.initializer_range,
        )
        # As attributes, so that the model tracks their variables.
        self.word_norm, self.ngram_convs = self.scorer.word_norm, self.scorer.convs
        self.ngram_norms, self.logit_layers = self.scorer.norms, self.scorer.logit_layers
        self.scorer.build()

    def head(self, long_output, global_output, inputs, training):
        word_ids = inputs.extras.get("word_ids")
        if word_ids is None:
            # Padding may be anywhere, and does not count as words.
            word_ids = tf.where(inputs.mask, tf.cumsum(tf.cast(inputs.mask, tf.int32), 1) - 1, -1)
        else:
            limit, words = tf.shape(word_ids)[1], "the number of long tokens"
            word_ids = argument_checks.in_range("word_ids", word_ids, -1, limit, words)
        words = ngrams_ops.sum_words(long_output, tf.maximum(word_ids, 0), word_ids >= 0)
        places = tf.range(tf.shape(word_ids)[1])
        word_mask = places <= tf.reduce_max(word_ids, axis=1, keepdims=True)
        mask = ngrams_ops.ngram_mask(word_mask, self.max_words)
        return self.scorer(words, mask, training)

    def default_loss(self):
        return KeyphraseCrossentropy()

    def default_metrics(self):
        return [KeyphraseHits()]


def _is_there(logits):
    """Which n-grams exist: bool, shaped as the logits."""
    return logits > 0.5 * ngrams_ops.MASKED_LOGIT


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class KeyphraseCrossentropy(tf_keras.losses.Loss):
    """Cross entropy with one softmax over all n-grams of a text; 0 without key phrases."""

    def call(self, y_true, y_pred):
        first, length = tf.unstack(tf.cast(y_true, tf.int32), 2, axis=-1)
        logits = tf.cast(y_pred, tf.float32)
        labels, has_labels = ngrams_ops.ngram_labels(
            first, length, _is_there(logits), _SMOOTHING_MASS
        )
        return tf.where(has_labels, ngrams_ops.cross_entropy(labels, logits), 0.0)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class KeyphraseHits(tf_keras.metrics.Mean):
    """Precision at 1: the share of texts, of those with key phrases, whose best n-gram is one."""

    def __init__(self, name="precision_at_1", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        best = best_phrases(y_pred, 1)  # [batch, 1, 2]
        phrases = tf.cast(y_true, tf.int32)
        is_hit = tf.reduce_any(tf.reduce_all(tf.equal(best, phrases), -1), -1)
        weights = tf.cast(tf.reduce_any(phrases[:, :, 1] > 0, axis=1), tf.float32)
        if sample_weight is not None:
            weights *= tf.reshape(tf.cast(sample_weight, tf.float32), [-1])
        return super().update_state(tf.cast(is_hit, tf.float32), weights)


def best_phrases(logits, num_best=5):
    """Returns the highest-scoring key phrases of each text.

    Args:
        logits: float [batch, max_words, long_len], of `EtcForKeyphraseExtraction`.
        num_best: int.
    Returns:
        int32 [batch, num_best, 2]. First word and number of words, the best first; 0 words if there
        are fewer phrases.

    >>> from etcmodel.models import best_phrases
    >>> logits = [[[0.1, 0.9, 0.3], [0.2, 1.5, -10000.0]]]  # Of one word, and of two.
    >>> best_phrases(logits, num_best=2).numpy()
    array([[[1, 2],
            [1, 1]]], dtype=int32)
    """
    logits = tf.convert_to_tensor(logits)
    best = ngrams_ops.best_ngrams(logits, _is_there(logits), num_best)
    return tf.stack([best["top_start_idx"], best["top_phrase_len"]], axis=-1)
