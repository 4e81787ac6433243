"""What layers refuse: sizes, rates, masks and labels that mean nothing, and parts of Keras 3."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import layers
from tests.layers.layer_cases import CASES


def refuses(message):
    return pytest.raises(ValueError, match=re.escape(message))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: layers.DenseLayers([3, 0, 1]), "`hidden_sizes[1]` must be at least 1"),
        (lambda: layers.DenseLayers([-1]), "`hidden_sizes[0]` must be at least 1"),
        (lambda: layers.DenseLayers([]), "`hidden_sizes` must not be empty"),
        (lambda: layers.ProjectAttentionHeads(0, 4), "`num_heads` must be at least 1"),
        (lambda: layers.ProjectAttentionHeads(2, 0), "`size_per_head` must be at least 1"),
        (lambda: layers.ProjectAttentionHeads(2, 1.5), "`size_per_head` must be an int"),
        (lambda: layers.RelativeAttention(8, 0), "`num_heads` must be at least 1"),
        (lambda: layers.RelativeAttention(8, 3), "`total_key_size` must be a multiple"),
        (lambda: layers.RelativeAttention(0, 2), "`hidden_size` must be at least 1"),
        (lambda: layers.FusedGlobalLocalAttention(8, 8, 0, 2), "`num_heads` must be at least 1"),
        (lambda: layers.FusedGlobalLocalAttention(8, 0, 2, 2), "`global_hidden_size` must be"),
        (lambda: layers.FusedGlobalLocalAttention(8, 8, 2, 0), "`local_radius` must be at least 1"),
        (lambda: layers.QkvRelativeLocalAttention(0), "`local_radius` must be at least 1"),
        (lambda: layers.QkvRelativeAttention(0), "`relative_vocab_size` must be at least 1"),
        (
            lambda: layers.QkvRelativeAttention(att_dropout_prob=2.0),
            "`att_dropout_prob` must be at least 0 and below 1. Received: 2.0",
        ),
        (
            lambda: layers.ResidualBlock(dropout_probability=-0.1),
            "`dropout_probability` must be at least 0 and below 1. Received: -0.1",
        ),
        (
            lambda: layers.ResidualBlock(inner_intermediate_size=0),
            "`inner_intermediate_size` must be at least 1. Received: 0",
        ),
        (
            lambda: layers.GlobalLocalTransformerLayers(8, 8, 1, 0, 2),
            "`num_attention_heads` must be at least 1",
        ),
        (
            lambda: layers.GlobalLocalTransformerLayers(8, 8, 0, 2, 2),
            "`num_hidden_layers` must be at least 1",
        ),
        (
            lambda: layers.GlobalLocalTransformerLayers(8, 8, 1, 2, 2, att_size_per_head=0),
            "`att_size_per_head` must be at least 1",
        ),
        (
            lambda: layers.RelativeTransformerLayers(8, 1, 0),
            "`num_attention_heads` must be at least 1",
        ),
        (lambda: layers.RelativeTransformerLayers(0, 1, 1), "`hidden_size` must be at least 1"),
        (
            lambda: layers.RelativeTransformerLayers(8, 1, 2, attention_probs_dropout_prob=1),
            "`attention_probs_dropout_prob` must be at least 0 and below 1. Received: 1",
        ),
    ],
)
def test_sizes_and_rates_out_of_range(make, message):
    with refuses(message):
        make()


def local_attention(**given):
    x = tf.zeros([1, 3, 1, 2])
    return layers.QkvRelativeLocalAttention(1, relative_vocab_size=4)(x, x, x, **given)


SIDE = {"side_keys": tf.zeros([1, 2, 1, 2]), "side_values": tf.zeros([1, 2, 1, 2])}
IDS, SIDE_IDS = tf.zeros([1, 3, 3], tf.int32), tf.zeros([1, 3, 2], tf.int32)


@pytest.mark.parametrize("name", ["side_att_mask", "side_relative_att_ids"])
def test_masks_and_labels_of_side_keys_need_these(name):
    with pytest.raises(ValueError) as raised:
        local_attention(**{name: SIDE_IDS, "relative_att_ids": IDS})
    assert str(raised.value) == f"`{name}` needs `side_keys` and `side_values`."
    local_attention(side_att_mask=SIDE_IDS, **SIDE)


@pytest.mark.parametrize(
    "labels", [{"relative_att_ids": IDS}, {"side_relative_att_ids": SIDE_IDS}], ids=["own", "side"]
)
def test_keys_and_side_keys_are_labeled_together(labels):
    with refuses("give both `relative_att_ids` and `side_relative_att_ids`, or neither"):
        local_attention(**labels, **SIDE)
    local_attention(relative_att_ids=IDS, side_relative_att_ids=SIDE_IDS, **SIDE)


@pytest.mark.parametrize("pieces", [("l2l", "l2g"), ("g2g", "g2l")])
@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("name", ["FusedGlobalLocalAttention", "GlobalLocalTransformerLayers"])
def test_the_two_pieces_of_one_softmax_are_labeled_together(name, pieces, missing):
    case = CASES[name]
    arguments = [f"{piece}_relative_att_ids" for piece in pieces]
    inputs = {**case.make_inputs(), arguments[missing]: None}
    with refuses("Give both `{}` and `{}`, or neither".format(*arguments)):
        case.call(case.construct(), inputs)


KERAS_3 = tf.keras.layers.Dense(8, name="theirs")
ADVICE = "use `tf_keras` instead of `tf.keras`"


def test_a_keras_3_layer_is_refused_as_a_part():
    with pytest.raises(ValueError, match=rf"`inner_layer` is the Keras 3 layer 'theirs'.*{ADVICE}"):
        layers.ResidualBlock(inner_layer=KERAS_3)
    norm = tf.keras.layers.LayerNormalization()
    for given in (norm, [norm]):
        with pytest.raises(ValueError, match=rf"`normalization_layer` is the Keras 3.*{ADVICE}"):
            layers.ResidualBlock(normalization_layer=given)
    projections = ("query_projection", "key_projection", "value_projection")
    for name in (*projections, "qkv_relative_attention", "output_projection"):
        with pytest.raises(ValueError, match=rf"`{name}` is the Keras 3 layer"):
            layers.RelativeAttention(8, 2, **{name: KERAS_3})
    with pytest.raises(ValueError, match=r"`dependencies\[0\]` is the Keras 3 layer 'theirs'"):
        layers.TrackedLambda(KERAS_3, dependencies=[KERAS_3])


INITIALIZER = tf.keras.initializers.TruncatedNormal(stddev=0.5)


@pytest.mark.parametrize(
    "layer",
    [
        layers.FusedGlobalLocalAttention(64, 64, 2, 2, initializer=INITIALIZER),
        layers.RelativeAttention(64, 2, initializer=INITIALIZER),
        layers.DenseLayers([64, 64], kernel_initializer=INITIALIZER),
        layers.ResidualBlock(inner_kernel_initializer=INITIALIZER),
    ],
    ids=lambda layer: layer.name,
)
def test_an_initializer_of_keras_3_gives_each_weight_values_of_its_own(layer):
    """By itself it would give all weights of one shape the same."""
    x = tf.zeros([1, 3, 64])
    layer(x, x) if isinstance(layer, layers.FusedGlobalLocalAttention) else layer(x)
    kernels = [w.numpy() for w in layer.weights if w.name.endswith("kernel:0")]
    assert len(kernels) > 1
    assert len({kernel.tobytes() for kernel in kernels}) == len(kernels)
    # A normal that is cut at two of its standard deviations keeps 0.88 of the first.
    values = np.concatenate([kernel.ravel() for kernel in kernels])
    np.testing.assert_allclose(np.std(values), 0.88 * 0.5, atol=0.05)


def test_a_part_that_is_no_layer_is_refused():
    with refuses("`inner_layer` must be a tf_keras layer. Received: <function"):
        layers.ResidualBlock(inner_layer=lambda x: x)


@pytest.mark.parametrize("name", ["EmbeddingLookup", "DenseLayers", "EtcModel", "ResidualBlock"])
def test_an_input_of_keras_3_is_refused(name):
    case = CASES[name]
    symbols = {
        argument: tf.keras.Input(batch_shape=spec.shape, dtype=spec.dtype.name)
        for argument, spec in case.make_specs().items()
    }
    with pytest.raises(ValueError, match=f"{name}.*got an input of Keras 3.*{ADVICE}"):
        case.call(case.construct(), symbols)


@pytest.mark.parametrize("is_built", [False, True])
def test_a_keras_3_model_around_a_layer_is_refused(is_built):
    """It would train, and leave out the weights of the layer."""

    class Around(tf.keras.Model):
        def __init__(self):
            super().__init__(name="around")
            self.inner = layers.DenseLayers([3], name="inner")

        def call(self, inputs):
            return self.inner(inputs)

    model = Around()
    if is_built:
        model.inner(np.zeros([1, 2], np.float32))
    with pytest.raises(
        ValueError, match=f"^Layer 'inner'.*is inside the Keras 3 layer 'around'.*{ADVICE}"
    ) as raised:
        model(np.zeros([1, 2], np.float32))
    assert "\n" not in str(raised.value)
    # Nothing of it stays behind.
    layers.DenseLayers([3])(np.zeros([1, 2], np.float32))


def test_keras_3_itself_refuses_a_layer_in_a_sequence():
    with pytest.raises(ValueError, match="Only instances of `keras.Layer`.*DenseLayers"):
        tf.keras.Sequential([layers.DenseLayers([3])])


def test_the_same_with_tf_keras_is_fine():
    block = layers.ResidualBlock(inner_layer=tf_keras.layers.Dense(2))
    model = tf_keras.Sequential([tf_keras.Input([2]), block, layers.DenseLayers([3])])
    assert model(np.zeros([1, 2], np.float32)).shape == [1, 3]
