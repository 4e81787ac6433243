"""The OpenKP model: `EtcModel` with visual embeddings, and a score for every n-gram of words."""

import copy
import functools

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.autograph import without_autograph
from etcmodel.layers import EmbeddingLookup, initializers, sublayers
from etcmodel.layers.ngrams import NgramScorer
from etcmodel.models import encoders, input_utils, padding
from etcmodel.ops import ngrams
from etcmodel.ops.ngrams import MASKED_LOGIT, best_ngrams, cross_entropy, ngram_mask, sum_words

from .config import (
    FLOAT_FEATURES,
    INDICATOR_FEATURES,
    LABEL_OCCURRENCES,
    NUM_FONT_IDS,
    VisualConfig,
)
from .features import LONG_FEATURES

__all__ = [
    "OpenKpModel",
    "build_layers",
    "crossed_indicators",
    "derived_features",
    "embed",
    "loss",
    "make_layers",
    "make_structure",
    "max_over_occurrences",
    "ngram_labels",
    "scaled",
    "to_long",
]

# Visual features of VDOM elements as embeddings (paper, appendix, "OpenKP").


def scaled(values, min_value=-1.0, max_value=1.0):
    """Clips `values` to a range and scales it to [-1, 1].

    Args:
        values: float [...].
        min_value, max_value: float.
    Returns:
        float [...].
    Raises:
        ValueError: if `min_value` is not below `max_value`.
    """
    if min_value >= max_value:
        raise ValueError(
            f"`min_value` must be below `max_value`. Received: {min_value=}, {max_value=}"
        )
    clipped = tf.clip_by_value(values, min_value, max_value)
    return (clipped - min_value) * (2.0 / (max_value - min_value)) - 1.0


def crossed_indicators(*indicators):
    """A number for each combination of indicators: the last one is worth 1, those before 2, 4, ….

    Args:
        *indicators: int [...], 0 or 1.
    Returns:
        int32 [...], below 2 to the power of their number.
    Raises:
        ValueError: if there is no indicator.
    """
    if not indicators:
        raise ValueError("There must be one indicator at least. Received: none")
    bits = [tf.cast(indicator, tf.int32) for indicator in reversed(indicators)]
    return tf.add_n([bit * 2**place for place, bit in enumerate(bits)])


def derived_features(features, config):
    """The inputs of the embeddings.

    Args:
        features: dict of float `FLOAT_FEATURES` and int `INDICATOR_FEATURES` [batch, global_len].
        config: `VisualConfig`.
    Returns:
        dict of `global_dense_features` float [batch, global_len, num_dense], the float features
        scaled to [-1, 1] and the indicators that are not crossed, and `global_indicator_cross`
        int32 [batch, global_len].
    """
    columns = []
    for name in FLOAT_FEATURES:
        low, high = config.ranges[name.removeprefix("global_").removeprefix("parent_")]
        columns.append(scaled(tf.cast(features[name], tf.float32), low, high))
    columns += [tf.cast(features[name], tf.float32) for name in _dense_indicators(config)]
    crossed = [features[name] for name in config.indicators_to_cross]
    return {
        "global_dense_features": tf.stack(columns, axis=-1),
        "global_indicator_cross": crossed_indicators(*crossed),
    }


def _dense_indicators(config):
    return [name for name in INDICATOR_FEATURES if name not in config.indicators_to_cross]


def make_layers(config, hidden_size, initializer_range=0.02):
    """Makes the layers of `embed`, by name and not yet built; a model owns them.

    Args:
        config: `VisualConfig`.
        hidden_size: int.
        initializer_range: float. Standard deviation of the initial weights.
    Returns:
        dict of name, as in the release's checkpoints, to layer.
    """
    initializer = {"initializer_range": initializer_range}
    sizes = {
        "indicator_cross_emb_lookup": 2 ** len(config.indicators_to_cross),
        "font_id_emb_lookup": NUM_FONT_IDS,
        "parent_font_id_emb_lookup": NUM_FONT_IDS,
    }
    layers = {
        name: EmbeddingLookup(size, hidden_size, name=name, **initializer)
        for name, size in sizes.items()
    }
    for name in _dense_names(config):
        layers[name] = tf_keras.layers.Dense(
            hidden_size,
            activation=tensor_utils.get_activation("gelu"),
            kernel_initializer=initializers.default_initializer(initializer_range),
            name=name,
        )
    return layers


def _dense_names(config):
    extra = (f"dense_feature_layer{i + 2}" for i in range(config.num_extra_dense_layers))
    return ["dense_feature_projection", *extra]


def build_layers(layers, config, hidden_size):
    """Builds the layers of `make_layers`."""
    dense_size = len(FLOAT_FEATURES) + len(_dense_indicators(config))
    for name, layer in layers.items():
        size = dense_size if name == "dense_feature_projection" else hidden_size
        sublayers.build_sublayer(layer, [None, None, size])


def embed(layers, config, features):
    """The sum of each element's visual embeddings.

    Args:
        layers: dict of `make_layers`.
        config: `VisualConfig`.
        features: dict of what `derived_features` returns and of int `FONT_FEATURES`
            [batch, global_len].
    Returns:
        float [batch, global_len, hidden_size].
    """
    dense = features["global_dense_features"]
    for name in _dense_names(config):
        dense = layers[name](dense)
    return (
        layers["indicator_cross_emb_lookup"](features["global_indicator_cross"])
        + layers["font_id_emb_lookup"](features["global_font_ids"])
        + layers["parent_font_id_emb_lookup"](features["global_parent_font_ids"])
        + dense
    )


# The loss: one softmax over all n-grams of a page (paper, appendix, "OpenKP").
#
# Difference from the release (`release_compatible=True` reproduces it): the smoothing mass goes to
# the n-grams of the page (there: also to those of the padding, whose logits are about -10,000,
# which adds up to 1 to the loss without any information) and may be 0 (there: at least 1e-6), and a
# page without labels adds nothing (there: all its n-grams are labels).


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


# The model.


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
            `global_font_ids`, `global_parent_font_ids` and what `derived_features` takes (or
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
            self.visual_layers = make_layers(
                self.visual_config, encoder_config.hidden_size, encoder_config.initializer_range
            )
        self.etc_model = encoders.make_global_local_encoder(encoder_config)
        self.scorer = NgramScorer(
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
        build_layers(self.visual_layers, self.visual_config, self.encoder_config.hidden_size)
        sublayers.build_sublayer(self.etc_model, None)
        self.scorer.build()
        self.built = True

    @without_autograph
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
            derived = derived_features(features, self.visual_config)
            features = {**features, **derived}
        embedding = embed(self.visual_layers, self.visual_config, features)
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
