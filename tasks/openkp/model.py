"""The OpenKP model: `EtcModel` with visual embeddings, and a score for every n-gram of words."""

import copy

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import helpers
from etcmodel.layers.recomputing_dropout import RecomputingDropout
from etcmodel.models import input_utils, modeling

from . import visual
from .config import VisualConfig
from .loss import MASKED_LOGIT, ngram_mask

__all__ = ["OpenKpModel", "best_ngrams", "make_structure", "sum_words", "to_long"]


class OpenKpModel(tf_keras.Model):
    """Scores every n-gram of a page as a key phrase.

    The long outputs of a word's pieces are summed; convolutions as wide as 1 to `kp_max_length`
    words make n-gram embeddings of the word embeddings, and a dense layer for each width their
    logits (paper, appendix, "OpenKP"). The logits are float32 under any policy.

    Args:
        etc_config: `EtcConfig`.
        visual_config: `VisualConfig`.
        kp_max_length: int. The longest n-gram.
        max_position_predictions: int. Best n-grams kept for decoding.
        **kwargs: of the Keras model.
    Call args:
        features: dict of int [batch, long_len] `long_token_ids`, `long_input_mask`,
            `long_word_idx`, `long_vdom_idx`, `long_word_input_mask`; int [batch, global_len]
            `global_token_ids`, `global_input_mask`; where visual features are used,
            `global_font_ids`, `global_parent_font_ids` and what `visual.derived_features` takes (or
            what it returns); others are ignored.
        training: bool.
    Returns:
        dict of float32 `ngram_logits` [batch, kp_max_length, long_len], by number of words and
        first word; and of the k best n-grams float32 `top_logits`, int32 `top_start_idx` and
        `top_phrase_len` [batch, k], the highest first; the length is 0 where a page has fewer.
    """

    def __init__(
        self,
        etc_config,
        *,
        visual_config=None,
        kp_max_length=5,
        max_position_predictions=100,
        **kwargs,
    ):
        super().__init__(**{"name": "openkp", **kwargs})
        self.etc_config = copy.copy(etc_config)  # The caller may go on to change theirs.
        self.visual_config = visual_config or VisualConfig()
        self.kp_max_length = kp_max_length
        self.max_position_predictions = max_position_predictions
        self.visual_layers = {}
        if self.visual_config.is_used:
            self.visual_layers = visual.make_layers(
                self.visual_config, etc_config.hidden_size, etc_config.initializer_range
            )
        self.etc_model = modeling.EtcModel(etc_config)
        self.word_emb_layer_norm = _layer_norm("word_emb_layer_norm")
        self.dropout = RecomputingDropout(etc_config.hidden_dropout_prob, name="dropout")
        widths = range(1, kp_max_length + 1)
        self.ngram_convs = [self._conv(width) for width in widths]
        self.ngram_layer_norms = [_layer_norm(f"{width}gram_layer_norm") for width in widths]
        self.logit_layers = [self._logit_layer(width) for width in widths]

    def _conv(self, width):
        return tf_keras.layers.Conv1D(
            self.etc_config.hidden_size,
            width,
            activation=tensor_utils.get_activation("gelu"),
            kernel_initializer=helpers.default_initializer(self.etc_config.initializer_range),
            name=f"{width}gram_conv",
        )

    def _logit_layer(self, width):
        return tf_keras.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer=helpers.default_initializer(self.etc_config.initializer_range),
            name=f"logit_dense{width - 1}",
            dtype="float32",
        )

    def build(self, input_shape=None):
        hidden = tf.TensorShape([None, None, self.etc_config.hidden_size])
        visual.build_layers(self.visual_layers, self.visual_config, self.etc_config.hidden_size)
        helpers.build_sublayer(self.etc_model, None)
        helpers.build_sublayer(self.word_emb_layer_norm, hidden)
        for layers in zip(self.ngram_convs, self.ngram_layer_norms, self.logit_layers, strict=True):
            for layer in layers:
                helpers.build_sublayer(layer, hidden)
        self.built = True

    def call(self, features, training=None):
        long_output, _ = self.etc_model(
            features["long_token_ids"],
            features["global_token_ids"],
            training=training,
            **self._embedding_adders(features),
            structure=make_structure(features, self.etc_config),
        )
        words = sum_words(long_output, features["long_word_idx"], features["long_input_mask"])
        words = self.dropout(self.word_emb_layer_norm(words), training=training)
        mask = ngram_mask(features["long_word_input_mask"], self.kp_max_length)
        logits = tf.where(mask, self._ngram_logits(words, training), MASKED_LOGIT)
        return {
            "ngram_logits": logits,
            **best_ngrams(logits, mask, self.max_position_predictions),
        }

    def _embedding_adders(self, features):
        """The arguments of `EtcModel` that hold visual embeddings."""
        if not self.visual_config.is_used:
            return {}
        if "global_dense_features" not in features:
            derived = visual.derived_features(features, self.visual_config)
            features = {**features, **derived}
        embedding = visual.embed(self.visual_layers, self.visual_config, features)
        adders = {}
        if self.visual_config.use_in_global:
            adders["global_embedding_adder"] = embedding
        if self.visual_config.use_in_long:
            adders["long_embedding_adder"] = to_long(embedding, features["long_vdom_idx"])
        return adders

    def _ngram_logits(self, words, training):
        """float32 [batch, kp_max_length, long_len] from embeddings [batch, long_len, hidden]."""
        logits = []
        for last, (conv, norm, dense) in enumerate(
            zip(self.ngram_convs, self.ngram_layer_norms, self.logit_layers, strict=True)
        ):
            # An n-gram is where its first word is.
            ngrams = conv(tf.pad(words, [[0, 0], [0, last], [0, 0]]))
            ngrams = self.dropout(norm(ngrams), training=training)
            logits.append(dense(ngrams)[:, :, 0])
        return tf.stack(logits, axis=1)


def best_ngrams(ngram_logits, mask, max_positions):
    """The n-grams with the highest logits.

    Args:
        ngram_logits: float [batch, kp_max_length, long_len]. By number of words and first word.
        mask: bool [batch, kp_max_length, long_len]. Which n-grams there are.
        max_positions: int.
    Returns:
        dict of [batch, k], the highest logit first: float `top_logits`, int32 `top_start_idx`, the
        first word, and `top_phrase_len`, the number of words, 0 for one that the mask rules out.
        k is `max_positions`, or the number of places if there are fewer.
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


def _layer_norm(name):
    return tf_keras.layers.LayerNormalization(axis=-1, epsilon=1e-12, name=name)


def make_structure(features, etc_config):
    """The structure of a batch, from which attention takes masks and labels.

    Args:
        features: see `OpenKpModel`.
        etc_config: `EtcConfig`.
    Returns:
        `ops.structure.GlobalLocalStructure`. Each long token is linked to that of its element.
    """
    return input_utils.make_structure_from_example_ids(
        long_example_ids=features["long_input_mask"],
        global_example_ids=features["global_input_mask"],
        sentence_ids=features["long_vdom_idx"],
        relative_pos_max_distance=etc_config.relative_pos_max_distance,
        use_hard_g2l_mask=etc_config.use_hard_g2l_mask,
        use_hard_l2g_mask=etc_config.use_hard_l2g_mask,
    )


def sum_words(long_embeddings, long_word_idx, long_input_mask):
    """The sum of the embeddings of each word's tokens.

    Args:
        long_embeddings: float [batch, long_len, hidden_size].
        long_word_idx: int [batch, long_len]. The word of each token, from 0.
        long_input_mask: int [batch, long_len]. 0 for padding.
    Returns:
        float [batch, long_len, hidden_size]. 0 beyond the last word.
    """
    shape = tf.shape(long_embeddings)
    kept = long_embeddings * tf.cast(long_input_mask, long_embeddings.dtype)[:, :, tf.newaxis]
    segments = tf.range(shape[0])[:, tf.newaxis] * shape[1] + long_word_idx
    sums = tf.math.unsorted_segment_sum(kept, segments, shape[0] * shape[1])
    return tf.ensure_shape(tf.reshape(sums, shape), long_embeddings.shape)


def to_long(global_embeddings, long_vdom_idx):
    """The embedding of each long token's element.

    Args:
        global_embeddings: float [batch, global_len, hidden_size].
        long_vdom_idx: int [batch, long_len].
    Returns:
        float [batch, long_len, hidden_size].
    """
    return tf.gather(global_embeddings, long_vdom_idx, batch_dims=1)
