"""The WikiHop models: a score for each candidate, by ETC or by any encoder (marked candidates)."""

import copy
import functools

import tensorflow as tf
import tf_keras

from etcmodel import layers, tensor_utils
from etcmodel.autograph import without_autograph
from etcmodel.layers import heads, initializers, sublayers
from etcmodel.models import encoders, multihop_utils, padding, token_classifiers
from etcmodel.models.processed_batches import GLOBAL_FEATURES, LONG_FEATURES, may_skip_padding

from .config import WikiHopInputConfig
from .features import GLOBAL_PADDING, LONG_PADDING

__all__ = ["MarkedWikiHopModel", "WikiHopModel", "loss", "per_example_loss"]

MASKED_LOGIT = -10000.0  # As in the release.
_IDS = WikiHopInputConfig()


class WikiHopModel(tf_keras.Model):
    """Scores the global token of each candidate.

    The head is a feed-forward block (if `add_final_layer`) and a linear layer, in float32 under any
    policy.

    Args:
        encoder_config: `EncoderConfig`.
        add_final_layer: bool. Add a feed-forward block, like that of an encoder layer, between the
            encoder and the linear layer.
        enable_l2g_linking: bool. Label each mention of a candidate as linked to the candidate's
            global token.
        candidate_ignore_hard_g2l, query_ignore_hard_g2l: bool. Let the global tokens of candidates,
            or of the query, attend to all long tokens, even with `use_hard_g2l_mask` in the config.
        flat_sequence: bool. Ignore documents, links and exemptions (paper, section 4.2).
        use_one_hot_embeddings: bool. See `EtcModel`.
        skip_padding: bool. Do not encode positions that are padding in the whole batch
            (`models.padding`).
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict of int [batch, long_len] `long_token_ids`, `long_token_type_ids`,
            `long_sentence_ids`, `long_paragraph_ids`, `long_paragraph_breakpoints`,
            `l2g_linked_ids`, and int [batch, global_len] `global_token_ids`,
            `global_token_type_ids`, `global_paragraph_breakpoints`; others are ignored.
        training: bool.
    Returns:
        dict of float32 `logits` and `probs` [batch, global_len], -10000 and 0 for global tokens
        that are not candidates, and int32 `answer_ids` [batch], the best candidate's position.
    """

    def __init__(
        self,
        encoder_config,
        *,
        add_final_layer=True,
        enable_l2g_linking=True,
        candidate_ignore_hard_g2l=False,
        query_ignore_hard_g2l=False,
        flat_sequence=False,
        use_one_hot_embeddings=False,
        skip_padding=False,
        **kwargs,
    ):
        super().__init__(**{"name": "wikihop", "dtype": "float32", **kwargs})
        self.encoder_config = copy.copy(encoder_config)  # The caller may still change theirs.
        self.add_final_layer = add_final_layer
        self.enable_l2g_linking = enable_l2g_linking
        self.candidate_ignore_hard_g2l = candidate_ignore_hard_g2l
        self.query_ignore_hard_g2l = query_ignore_hard_g2l
        self.flat_sequence = flat_sequence
        self.skip_padding = skip_padding
        self.etc_model = encoders.make_global_local_encoder(
            encoder_config, use_one_hot_embeddings=use_one_hot_embeddings
        )
        self.candidate_head = heads.TokenLogits(
            1, encoder_config.initializer_range, name="candidates", dtype="float32"
        )

    def build(self, input_shape=None):
        config = self.encoder_config
        sublayers.build_sublayer(self.etc_model, None)
        self.final_layer = self._final_layer() if self.add_final_layer else None
        self.candidate_head.build_in(self, "output_", config.hidden_size)
        self.built = True

    def _final_layer(self):
        config = self.encoder_config
        layer = layers.ResidualBlock(
            dropout_probability=config.hidden_dropout_prob,
            use_pre_activation_order=config.use_pre_activation_order,
            inner_intermediate_size=config.intermediate_size,
            inner_activation=tensor_utils.get_activation(config.hidden_act),
            inner_kernel_initializer=initializers.default_initializer(config.initializer_range),
            name="global_output_layer/transform/residual_block",  # As in the release's checkpoints.
            dtype="float32",
        )
        sublayers.build_sublayer(layer, [None, None, config.hidden_size])
        return layer

    @without_autograph
    def call(self, features, training=None):
        encode = functools.partial(self._encode, training=training)
        if self.skip_padding:
            is_real = multihop_utils.real_tokens(features)
            axes = (LONG_PADDING, GLOBAL_PADDING)
            _, hidden = padding.encode_without_padding(encode, features, *is_real, axes)
        else:
            _, hidden = encode(features)
        hidden = tf.cast(hidden, tf.float32)  # [batch, global_len, hidden_size]
        if self.final_layer is not None:
            hidden = self.final_layer(hidden, training=training)
        logits = self.candidate_head(hidden)[:, :, 0]  # [batch, global_len]
        return _outputs(logits, features)

    def _encode(self, features, training):
        return self.etc_model(
            features["long_token_ids"],
            features["global_token_ids"],
            segment_ids=features["long_token_type_ids"],
            global_segment_ids=features["global_token_type_ids"],
            training=training,
            structure=self._structure(features),
        )

    def _structure(self, features):
        return multihop_utils.structure_of(
            features,
            self.encoder_config,
            ignore_hard_g2l_mask=self._ignore_hard_g2l_mask(features["global_token_ids"]),
            flat_sequence=self.flat_sequence,
            l2g_linked_ids=features["l2g_linked_ids"] if self.enable_l2g_linking else None,
        )

    def _ignore_hard_g2l_mask(self, global_token_ids):
        """bool [batch, global_len]."""
        mask = tf.zeros_like(global_token_ids, tf.bool)
        if self.candidate_ignore_hard_g2l:
            mask |= tf.equal(global_token_ids, _IDS.candidate_global_token_id)
        if self.query_ignore_hard_g2l:
            mask |= tf.equal(global_token_ids, _IDS.query_global_token_id)
        return mask


class MarkedWikiHopModel(tf_keras.Model):
    """Scores the [ent] in front of each candidate, with any encoder: the mean over the chunks.

    The encoder's `systems.System.tagger` has the linear layer. In Longformer, all tokens before the
    documents are global (Beltagy et al. 2020, appendix D, "WikiHop").

    Args:
        encoder_config: `EncoderConfig`.
        skip_padding: bool. Do not encode positions that are padding in all chunks of the batch.
            Chunks that no example of the batch has are never encoded.
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict of int [batch, num_chunks, long_len] `token_ids`, `segment_ids`,
            `example_ids`, `links`, and int [batch, global_len] `global_token_ids`,
            `global_segment_ids`, `global_example_ids`, `candidate_places`: see
            `marks.make_features`; others are ignored.
        training: bool.
    Returns:
        As of `WikiHopModel`; the candidates are the first of the global tokens.
    Raises:
        ValueError: naming the config's type, if there is no such model for it.
    """

    def __init__(self, encoder_config, *, skip_padding=False, **kwargs):
        super().__init__(**{"name": "wikihop", "dtype": "float32", **kwargs})
        # Its layers are this model's own, so that their names in checkpoints begin with no model.
        tagger = token_classifiers.make_token_classifier(encoder_config, num_labels=1)
        self.__dict__["tagger"] = tagger
        self.skip_padding = skip_padding and may_skip_padding(encoder_config)

    def build(self, input_shape=None):
        self.tagger.build()
        self.parts = list(self.tagger.layers)
        self.built = True

    @without_autograph
    def call(self, features, training=None):
        has_token = tf.reduce_any(features["example_ids"] > 0, axis=2)  # [batch, num_chunks]
        features = padding.cut(features, has_token, LONG_FEATURES)
        num_chunks = tf.shape(features["example_ids"])[1]
        of_chunks = {name: _merged(features[name]) for name in LONG_FEATURES}
        for name in (*GLOBAL_FEATURES, "candidate_places"):
            of_chunks[name] = tf.repeat(features[name], num_chunks, axis=0)
        if self.skip_padding:
            of_chunks = padding.cut(of_chunks, of_chunks["example_ids"] > 0, LONG_FEATURES)
        is_real = of_chunks["example_ids"] > 0
        is_global = is_real & tf.equal(of_chunks["segment_ids"], 0)
        of_chunks["global_attention_mask"] = tf.cast(is_global, tf.int32)
        logits = self.tagger(of_chunks, training=training)["logits"][:, :, 0]
        logits = tf.gather(tf.cast(logits, tf.float32), of_chunks["candidate_places"], batch_dims=1)
        shape = [-1, num_chunks, tf.shape(logits)[1]]
        weights = tf.reshape(tf.cast(tf.reduce_any(is_real, axis=1), tf.float32), [*shape[:2], 1])
        total = tf.reduce_sum(tf.reshape(logits, shape) * weights, axis=1)
        return _outputs(tf.math.divide_no_nan(total, tf.reduce_sum(weights, axis=1)), features)


def _merged(x):
    """Reshapes [batch, num_chunks, long_len] to [batch * num_chunks, long_len]."""
    return tf.reshape(x, [-1, tf.shape(x)[2]])


def _is_candidate(features):
    """bool [batch, global_len]. Whether a global token stands for a candidate."""
    if "candidate_places" in features:
        return features["candidate_places"] > 0
    return tf.equal(features["global_token_ids"], _IDS.candidate_global_token_id)


def _outputs(logits, features):
    """The outputs of both models, from float32 logits of global tokens [batch, global_len]."""
    logits = tf.where(_is_candidate(features), logits, MASKED_LOGIT)
    return {
        "logits": logits,
        "probs": tf.nn.softmax(logits),
        "answer_ids": tf.argmax(logits, -1, tf.int32),
    }


def per_example_loss(outputs, features, *, label_smoothing=0.0):
    """Softmax cross entropy over the candidates.

    With smoothing, the label has probability 1 - s, and all candidates (including the label) share
    s.

    Args:
        outputs: of one of the models.
        features: the model's, and float or int `label_id`
            [batch], the position of the answer's global token.
        label_smoothing: float in [0, 1): s.
    Returns:
        float32 [batch]. Finite even for a padding example, which has no candidates.
    """
    log_probs = tf.nn.log_softmax(outputs["logits"])
    labels = tf.one_hot(tf.cast(features["label_id"], tf.int32), tf.shape(log_probs)[1])
    if label_smoothing:
        is_candidate = tf.cast(_is_candidate(features), tf.float32)
        num_candidates = tf.reduce_sum(is_candidate, axis=-1, keepdims=True)
        uniform = tf.math.divide_no_nan(is_candidate, num_candidates)
        labels = (1.0 - label_smoothing) * labels + label_smoothing * uniform
    return -tf.reduce_sum(labels * log_probs, axis=-1)


def loss(outputs, features, *, label_smoothing=0.0):
    """Loss and accuracy: means over the batch without padding examples (`is_real_example` is 0).

    Args: as for `per_example_loss`.
    Returns:
        dict of float32 scalars: "loss", and "train_accuracy" in [0, 1].
    """
    is_real = tf.cast(features["is_real_example"], tf.float32)
    is_right = tf.equal(outputs["answer_ids"], tf.cast(features["label_id"], tf.int32))
    parts = {
        "loss": per_example_loss(outputs, features, label_smoothing=label_smoothing),
        "train_accuracy": tf.cast(is_right, tf.float32),
    }
    num_real = tf.reduce_sum(is_real)
    return {
        name: tf.math.divide_no_nan(tf.reduce_sum(part * is_real), num_real)
        for name, part in parts.items()
    }
