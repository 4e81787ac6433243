"""The OpenKP model: `EtcModel` with visual embeddings, and a score for every n-gram of words."""

import copy
import functools

import tensorflow as tf
import tf_keras

from etcmodel.layers import ngrams, sublayers
from etcmodel.models import encoders, input_utils, padding
from etcmodel.ops.ngrams import best_ngrams, ngram_mask, sum_words

from . import visual
from .config import VisualConfig
from .inputs import LONG_FEATURES

__all__ = ["OpenKpModel", "best_ngrams", "make_structure", "sum_words", "to_long"]


class OpenKpModel(tf_keras.Model):
    """Scores every n-gram of a page as a key phrase.

    The long outputs of a word's pieces are summed to word embeddings; convolutions with widths of 1
    to `kp_max_length` words make n-gram embeddings of them, and a dense layer for each width gives
    the logits (paper, appendix, "OpenKP"). The logits are float32 under any policy.

    Args:
        encoder_config: `EncoderConfig`.
        visual_config: `VisualConfig`.
        kp_max_length: int. Length of the longest n-gram.
        max_position_predictions: int. Number of best n-grams kept for decoding.
        skip_padding: bool. Do not encode positions that are padding in the whole batch
            (`models.padding`).
        **kwargs: arguments of the Keras model.
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
        encoder_config,
        *,
        visual_config=None,
        kp_max_length=5,
        max_position_predictions=100,
        skip_padding=False,
        **kwargs,
    ):
        super().__init__(**{"name": "openkp", **kwargs})
        self.encoder_config = copy.copy(encoder_config)  # The caller may still change theirs.
        self.visual_config = visual_config or VisualConfig()
        self.kp_max_length = kp_max_length
        self.max_position_predictions = max_position_predictions
        self.skip_padding = skip_padding
        self.visual_layers = {}
        if self.visual_config.is_used:
            self.visual_layers = visual.make_layers(
                self.visual_config, encoder_config.hidden_size, encoder_config.initializer_range
            )
        self.etc_model = encoders.make_global_local_encoder(encoder_config)
        self.scorer = ngrams.NgramScorer(
            encoder_config.hidden_size,
            kp_max_length,
            dropout_rate=encoder_config.hidden_dropout_prob,
            initializer_range=encoder_config.initializer_range,
        )
        # The scorer's layers are the model's own, for the same names as in the release's
        # checkpoints.
        self.word_emb_layer_norm = self.scorer.word_norm
        self.dropout = self.scorer.dropout
        self.ngram_convs = self.scorer.convs
        self.ngram_layer_norms = self.scorer.norms
        self.logit_layers = self.scorer.logit_layers

    def build(self, input_shape=None):
        visual.build_layers(self.visual_layers, self.visual_config, self.encoder_config.hidden_size)
        sublayers.build_sublayer(self.etc_model, None)
        self.scorer.build()
        self.built = True

    def call(self, features, training=None):
        encode = functools.partial(self._encode, training=training)
        if self.skip_padding:
            is_real = (features["long_input_mask"] > 0, features["global_input_mask"] > 0)
            axes = (LONG_FEATURES, [name for name in features if name.startswith("global_")])
            long_output, _ = padding.encode_without_padding(encode, features, *is_real, axes)
        else:
            long_output, _ = encode(features)
        words = sum_words(long_output, features["long_word_idx"], features["long_input_mask"])
        mask = ngram_mask(features["long_word_input_mask"], self.kp_max_length)
        logits = self.scorer(words, mask, training)
        return {
            "ngram_logits": logits,
            **best_ngrams(logits, mask, self.max_position_predictions),
        }

    def _encode(self, features, training):
        return self.etc_model(
            features["long_token_ids"],
            features["global_token_ids"],
            training=training,
            **self._embedding_adders(features),
            structure=make_structure(features, self.encoder_config),
        )

    def _embedding_adders(self, features):
        """The arguments of `EtcModel` with visual embeddings."""
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


def make_structure(features, encoder_config):
    """The structure of a batch, for the masks and relative labels of attention.

    Args:
        features: see `OpenKpModel`.
        encoder_config: `EncoderConfig`.
    Returns:
        `ops.structure.GlobalLocalStructure`. Each long token is linked to the global token of its
        element.
    """
    return input_utils.make_structure_from_example_ids(
        long_example_ids=features["long_input_mask"],
        global_example_ids=features["global_input_mask"],
        sentence_ids=features["long_vdom_idx"],
        relative_pos_max_distance=encoder_config.relative_pos_max_distance,
        use_hard_g2l_mask=encoder_config.use_hard_g2l_mask,
        use_hard_l2g_mask=encoder_config.use_hard_l2g_mask,
    )


def to_long(global_embeddings, long_vdom_idx):
    """The embedding of each long token's element.

    Args:
        global_embeddings: float [batch, global_len, hidden_size].
        long_vdom_idx: int [batch, long_len].
    Returns:
        float [batch, long_len, hidden_size].
    """
    return tf.gather(global_embeddings, long_vdom_idx, batch_dims=1)
