"""Visual features of VDOM elements as embeddings (paper, appendix, "OpenKP")."""

import tensorflow as tf
import tf_keras

from etcmodel import tensor_utils
from etcmodel.layers import EmbeddingLookup, initializers, sublayers

from .config import FLOAT_FEATURES, INDICATOR_FEATURES, NUM_FONT_IDS

__all__ = [
    "build_layers",
    "crossed_indicators",
    "derived_features",
    "embed",
    "make_layers",
    "scaled",
]


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
