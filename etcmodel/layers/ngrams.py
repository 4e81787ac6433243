"""Scores n-grams of words."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import initializers, sublayers
from etcmodel.layers.recomputing_dropout import RecomputingDropout
from etcmodel.ops.ngrams import MASKED_LOGIT


class NgramScorer:
    """Layers that score all n-grams of words (paper, appendix, "OpenKP").

    Convolutions with widths of 1 to `max_length` words turn word embeddings into n-gram embeddings,
    and a dense layer for each width computes their logits. A scorer is not a layer itself: the
    model that uses it keeps these layers as attributes, so that it tracks their variables.

    Args:
        hidden_size: int. Size of the word embeddings.
        max_length: int. The most words in an n-gram.
        dropout_rate: float. Dropout rate of word and n-gram embeddings.
        initializer_range: float. Standard deviation of the initial weights.
    Call args:
        words: float [batch, num_words, hidden_size].
        mask: bool [batch, max_length, num_words]. Which n-grams exist: see `ops.ngrams`.
        training: bool.
    Returns:
        float32 [batch, max_length, num_words]. Logits by number of words (minus 1) and first word;
        `MASKED_LOGIT` for n-grams that do not exist.
    """

    def __init__(self, hidden_size, max_length, *, dropout_rate, initializer_range):
        self.hidden_size = hidden_size
        self.initializer_range = initializer_range
        widths = range(1, max_length + 1)
        self.word_norm = _layer_norm("word_emb_layer_norm")
        self.dropout = RecomputingDropout(dropout_rate, name="dropout")
        self.convs = [self._conv(width) for width in widths]
        self.norms = [_layer_norm(f"{width}gram_layer_norm") for width in widths]
        self.logit_layers = [self._logit_layer(width) for width in widths]

    def _conv(self, width):
        return tf_keras.layers.Conv1D(
            self.hidden_size,
            width,
            activation=tensor_utils.get_activation("gelu"),
            kernel_initializer=initializers.default_initializer(self.initializer_range),
            name=f"{width}gram_conv",
        )

    def _logit_layer(self, width):
        return tf_keras.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer=initializers.default_initializer(self.initializer_range),
            name=f"logit_dense{width - 1}",
            dtype="float32",
        )

    def build(self):
        """Creates all variables."""
        hidden = tf.TensorShape([None, None, self.hidden_size])
        sublayers.build_sublayer(self.word_norm, hidden)
        for layers in zip(self.convs, self.norms, self.logit_layers, strict=True):
            for layer in layers:
                sublayers.build_sublayer(layer, hidden)

    def __call__(self, words, mask, training=None):
        words = self.dropout(self.word_norm(words), training=training)
        num_words, logits = tensor_utils.get_shape_list(words)[1], []
        for last, (conv, norm, dense) in enumerate(
            zip(self.convs, self.norms, self.logit_layers, strict=True)
        ):
            # Padding on the right puts each n-gram at the position of its first word.
            ngrams = conv(tf.pad(words, [[0, 0], [0, last], [0, 0]]))
            ngrams = self.dropout(norm(ngrams), training=training)
            # Of an empty batch, TensorFlow's convolution returns the padding, too.
            logits.append(dense(ngrams)[:, :num_words, 0])
        return tf.where(mask, tf.stack(logits, axis=1), MASKED_LOGIT)


def _layer_norm(name):
    return tf_keras.layers.LayerNormalization(axis=-1, epsilon=1e-12, name=name)
