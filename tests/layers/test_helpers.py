"""`TrackedLambda`, `EmbeddingLookup`, and the names by which the release's users know parts."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import layers
from etcmodel.models import modeling
from tests.layers.layer_cases import CASES, ETC_CONFIG

X = np.random.default_rng(0).normal(size=[3, 4]).astype(np.float32)


def test_a_tracked_lambda_has_the_weights_of_what_its_function_uses():
    dense, scale = tf_keras.layers.Dense(4), tf.Variable(2.0)
    layer = layers.TrackedLambda(lambda x: scale * dense(x), dependencies=[dense, scale])
    with tf.GradientTape() as tape:
        y = layer(X)
    np.testing.assert_allclose(y, 2 * (X @ dense.kernel), atol=1e-6)
    assert {id(w) for w in layer.trainable_weights} == {id(w) for w in (*dense.weights, scale)}
    assert all(g is not None for g in tape.gradient(y, layer.trainable_weights))


def test_the_weights_of_a_tracked_lambda_are_saved_with_a_model(tmp_path):
    def make():
        dense = tf_keras.layers.Dense(4)
        inputs = tf_keras.Input([4])
        layer = layers.TrackedLambda(lambda x: tf.nn.relu(dense(x)), dependencies=[dense])
        return tf_keras.Model(inputs, layer(inputs))

    model, other = make(), make()
    for file in ("weights.h5", "checkpoint"):
        model.save_weights(str(tmp_path / file))
        other.load_weights(str(tmp_path / file))
        np.testing.assert_array_equal(other(X), model(X))
        other.set_weights([0 * w for w in other.get_weights()])
    with pytest.raises(NotImplementedError, match="holds a Python function, which a config cannot"):
        model.get_config()


def test_a_tracked_lambda_takes_any_arguments_and_passes_training_to_whom_it_concerns():
    def plain(x, y, times=1):
        return times * (x + y)

    layer = layers.TrackedLambda(plain)
    np.testing.assert_array_equal(layer(X, X, times=2), 4 * X)
    np.testing.assert_array_equal(layer(X, X, training=True), 2 * X)

    def knowing(x, training=None):
        return x if training else 0 * x

    layer = layers.TrackedLambda(knowing)
    np.testing.assert_array_equal(layer(X, training=True), X)
    np.testing.assert_array_equal(layer(X, training=False), 0 * X)


@pytest.mark.parametrize("use_one_hot_lookup", [False, True])
def test_ids_at_masked_places_are_ignored(use_one_hot_lookup):
    layer = layers.EmbeddingLookup(5, 3, use_one_hot_lookup=use_one_hot_lookup)
    ids, mask = np.array([[-1, 2, 99], [4, 0, -7]]), np.array([[0, 1, 0], [1, 1, 0]])
    table = layer(np.arange(5)).numpy()
    expected = np.where(mask[..., np.newaxis] == 1, table[ids * mask], 0)
    for given in (mask, mask.astype(bool), mask.astype(np.float32)):
        np.testing.assert_allclose(layer(ids, input_mask=given), expected)
    run = tf.function(lambda ids: layer(ids, input_mask=mask), jit_compile=True)
    np.testing.assert_allclose(run(tf.constant(ids)), expected)


def test_a_projection_starts_with_a_spread_that_keeps_the_scale_of_embeddings():
    layer = layers.EmbeddingLookup(10, 64, projection_size=2000, initializer_range=0.02)
    layer(np.array([[1]]))
    assert layer.embedding_projection.kernel.shape == [64, 2000]
    kernel = layer.embedding_projection.kernel.numpy()
    # Keras cuts off the normal at two deviations, which narrows it by a factor of 0.88.
    np.testing.assert_allclose(kernel.std(), 0.88 * 64**-0.5, rtol=0.02)
    assert abs(kernel).max() <= 2 * 64**-0.5
    assert layers.EmbeddingLookup(10, 64).embedding_projection is None


@pytest.mark.parametrize("projection_size", [0, 2])
def test_a_projection_can_be_set(projection_size):
    layer = layers.EmbeddingLookup(10, 4, projection_size)
    ones = tf_keras.layers.Dense(3, kernel_initializer="ones")
    layer.embedding_projection = ones
    output = layer(np.array([[1, 2]]), input_mask=[[1, 0]])
    table = layer.embedding_table.numpy()
    np.testing.assert_allclose(output, [[[table[1].sum()] * 3, [0] * 3]], rtol=1e-6)
    assert layer.embedding_projection is ones
    assert [x.shape for x in layer.trainable_weights] == [(10, 4), (4, 3), (3,)]


ATTRIBUTES = {
    "token_embedding": "token_emb_lookup",
    "token_embedding_norm": "long_emb_layer_norm",
    "segment_embedding": "segment_emb_lookup",
    "position_embedding": "position_emb_lookup_long",
    "global_token_embedding": "token_emb_lookup",
    "global_token_embedding_norm": "global_emb_layer_norm",
    "global_position_embedding": "position_emb_lookup_global",
    "global_local_transformer": "global_local_transformer_layers",
}


def test_parts_of_the_encoder_have_the_release_s_names_and_checkpoints_know_them_once(tmp_path):
    model = CASES["EtcModel"].construct()
    for attribute, layer_name in ATTRIBUTES.items():
        assert getattr(model, attribute).name == layer_name
    for attribute in ("token_embedding_dropout", "global_token_embedding_dropout"):
        assert getattr(model, attribute).rate == ETC_CONFIG.hidden_dropout_prob
    without = modeling.EtcModel(modeling.EtcConfig(vocab_size=9, hidden_size=12))
    assert without.position_embedding is None and without.global_position_embedding is None
    CASES["EtcModel"].call(model, CASES["EtcModel"].make_inputs())
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    saved = {name for name, _ in tf.train.list_variables(path)}
    assert not {name for name in saved if set(name.split("/")) & set(ATTRIBUTES)}
    assert len(saved) == len(model.weights) + 1  # The graph of objects is the one more.


def test_stacks_tell_their_initializer_and_the_size_of_heads():
    stack = layers.GlobalLocalTransformerLayers(12, 12, 1, 3, 2, initializer_range=0.5)
    assert stack.att_size_per_head == 4 and stack.get_config()["att_size_per_head"] is None
    assert stack.initializer.get_config()["stddev"] == 0.5
    given = layers.GlobalLocalTransformerLayers(12, 12, 1, 3, 2, att_size_per_head=5)
    assert given.att_size_per_head == given.get_config()["att_size_per_head"] == 5
    relative = layers.RelativeTransformerLayers(12, 1, 2, initializer_range=0.25)
    assert relative.att_size_per_head == 6
    assert relative.initializer.get_config()["stddev"] == 0.25
