"""Temperature, projections and rising weight of contrastive predictive coding."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel import training
from etcmodel.pretrain import config, masking, model, task
from tests.pretrain import windows

SIZE = windows.etc_config().hidden_size
DOCUMENTS = [windows.document("a", 0, 1), windows.document("b", 2, 5, 6)]


@functools.cache
def build_model(**options):
    tf_keras.utils.set_random_seed(0)
    pretrain_model = model.PretrainModel(windows.etc_config(), **options)
    pretrain_model.build()
    return pretrain_model


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    tokenizer = windows.make_tokenizer(tmp_path_factory.mktemp("vocab"))
    features = windows.make_windows(DOCUMENTS, tokenizer).features
    config = windows.masking_config(tokenizer, cpc_share=0.5)
    return masking.mask_batch(windows.tensors(features), tf.constant([0], tf.int64), 0, config)


@pytest.fixture(scope="module")
def outputs_of_identity(batch):
    """Outputs of a model whose bilinear form is the dot product."""
    plain = build_model()
    plain.cpc_weights.assign(tf.eye(SIZE))
    return {name: x.numpy() for name, x in plain(batch).items()}


@pytest.mark.slow
def test_logits_are_divided_by_the_temperature(batch, outputs_of_identity):
    hot = build_model(cpc_temperature=0.25)
    hot.cpc_weights.assign(tf.eye(SIZE))
    outputs, expected = hot(batch), outputs_of_identity
    np.testing.assert_allclose(
        outputs["cpc_predictions"], 4 * expected["cpc_predictions"], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(outputs["cpc_targets"], expected["cpc_targets"], rtol=1e-4)


def test_projections_are_compared_by_their_cosine(batch, outputs_of_identity):
    projected = build_model(cpc_projection_size=3, cpc_temperature=0.1)
    outputs = projected(batch)
    hidden = outputs_of_identity["cpc_predictions"] * np.sqrt(SIZE)
    for name, vectors, weights, scale in (
        ("cpc_predictions", hidden, projected.cpc_weights, 10.0),
        ("cpc_targets", outputs_of_identity["cpc_targets"], projected.cpc_target_weights, 1.0),
    ):
        assert weights.shape == (SIZE, 3)
        expected = vectors @ weights.numpy()
        expected = scale * expected / np.linalg.norm(expected, axis=-1, keepdims=True)
        np.testing.assert_allclose(outputs[name], expected, rtol=1e-4, atol=1e-4)


def test_both_projections_learn(batch):
    projected = build_model(cpc_projection_size=3, cpc_temperature=0.1)
    with tf.GradientTape() as tape:
        losses = model.pretraining_loss(
            projected(batch, training=True), batch, mlm_weight=0.0, cpc_weight=1.0
        )
    weights = [projected.cpc_weights, projected.cpc_target_weights]
    for gradient in tape.gradient(losses["loss"], weights):
        assert np.abs(gradient).max() > 0


def weight_shares(skip_examples, warmup_steps=4, number=6, **options):
    options = {"global_batch_size": 2, "skip_examples": skip_examples, **options}
    request = training.TrainDataRequest(**options)
    batches = tf.data.Dataset.from_tensors({"long_token_ids": tf.zeros([2, 3], tf.int32)}).repeat()
    with_shares = task.with_cpc_weight_shares(batches, warmup_steps, request)
    return [x.get("cpc_weight_share") for x in with_shares.take(number).as_numpy_iterator()]


def test_the_weight_rises_by_the_step_and_a_resumed_run_goes_on_there():
    whole = weight_shares(0)
    np.testing.assert_allclose(whole, np.repeat([[0], [0.25], [0.5], [0.75], [1], [1]], 2, axis=1))
    np.testing.assert_array_equal(weight_shares(2 * 2)[:4], whole[2:])
    assert weight_shares(0, warmup_steps=0) == [None] * 6


def test_all_devices_have_the_weight_of_their_step():
    """A worker makes a batch for each of its devices, here three, in every step."""
    context = tf.distribute.InputContext(2, 1, num_replicas_in_sync=6)
    shares = weight_shares(12, number=9, global_batch_size=12, input_context=context)
    np.testing.assert_allclose([x[0] for x in shares], np.repeat([0.25, 0.5, 0.75], 3))


def test_the_loss_has_that_share_of_the_weight(batch, outputs_of_identity):
    outputs = outputs_of_identity
    features = {**batch, "cpc_weight_share": tf.constant([0.25])}
    losses = model.pretraining_loss(outputs, features, mlm_weight=0.8, cpc_weight=0.2)
    expected = 0.8 * losses["mlm_loss"] + 0.05 * losses["cpc_loss"]
    np.testing.assert_allclose(losses["loss"], expected, rtol=1e-6)


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(ValueError, match="`cpc_temperature` must be above 0"):
        config.PretrainConfig(encoder_config=windows.etc_config(), cpc_temperature=0.0)


def test_windows_without_room_for_masked_sentences_have_the_same_language_model(batch):
    none = {name: x[:, :0] for name, x in batch.items() if name.startswith("cpc_")}
    pretrain_model = build_model()
    outputs, whole = pretrain_model({**batch, **none}), pretrain_model(batch)
    assert set(whole) - set(outputs) == {"cpc_predictions", "cpc_targets"}
    for name, x in outputs.items():
        np.testing.assert_allclose(x, whole[name], rtol=1e-5, atol=1e-6, err_msg=name)
