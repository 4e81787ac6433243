"""Integrated gradients: the closed form where there is one, and completeness everywhere else."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.inspection import integrated_gradients
from tests.eager import eagerly, in_graphs  # noqa: F401
from tests.inspection import small_models


class Bag(tf_keras.Model):
    """Weighted sums of token embeddings, long and global: [batch, 8] each."""

    def __init__(self, encoder, power=1):
        super().__init__()
        self.encoder, self.power = encoder, power

    def call(self, features):
        embeddings = (self.encoder.token_emb_lookup(features[x]) for x in small_models.IDS)
        return [tf.reduce_sum(x**self.power * WEIGHTS, 1) for x in embeddings]


pytestmark = pytest.mark.usefixtures("eagerly")

WEIGHTS = np.random.default_rng(3).normal(size=8).astype(np.float32)


@pytest.fixture(scope="module", params=["as they are", "projected"])
def encoder(request):
    changes = {"embedding_size": 5} if request.param == "projected" else {}
    return small_models.make_encoder(num_layers=1, **changes)


@pytest.fixture(scope="module")
def inputs(encoder):
    return small_models.inputs_of(encoder.config)


@pytest.fixture(scope="module")
def plain_encoder():
    return small_models.make_encoder(num_layers=1)


def of_first_token(outputs):
    """A number of each example that depends on its first long token's state."""
    return tf.reduce_sum(outputs[0][:, 0] * WEIGHTS, -1)


def both(outputs):
    """A number of each example that long and global tokens both matter for."""
    return tf.add_n([tf.reduce_sum(x, -1) for x in outputs])


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("baseline_id", [None, 7])
def test_for_a_linear_score_they_are_the_weighted_embeddings(encoder, inputs, baseline_id):
    found = integrated_gradients(
        Bag(encoder), inputs, both, num_steps=1, baseline_id=baseline_id, tolerance=1e-5
    )
    for attributions, name in zip(found.tokens, small_models.IDS, strict=True):
        way = encoder.token_emb_lookup(inputs[name])
        if baseline_id is not None:
            way -= encoder.token_emb_lookup(np.array([baseline_id]))
        np.testing.assert_allclose(attributions, tf.linalg.matvec(way, WEIGHTS), atol=1e-5)
    assert found.tokens[0].shape == (2, small_models.LONG_LEN)


def test_for_a_cubic_score_from_zeros_two_points_are_exact(encoder, inputs):
    found = integrated_gradients(Bag(encoder, power=3), inputs, both, num_steps=2, tolerance=1e-4)
    for attributions, name in zip(found.tokens, small_models.IDS, strict=True):
        cubes = encoder.token_emb_lookup(inputs[name]) ** 3
        np.testing.assert_allclose(attributions, tf.linalg.matvec(cubes, WEIGHTS), atol=1e-4)


@pytest.mark.usefixtures("in_graphs")
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("variant", ["default", "pre-activation", "recomputing", "no labels"])
@pytest.mark.slow_cases(1)
def test_they_add_up_to_the_difference_of_the_scores(variant):
    model = small_models.make_encoder(num_layers=1, **small_models.VARIANTS[variant])
    inputs, score = small_models.inputs_of(model.config), of_first_token
    found = integrated_gradients(model, inputs, score, num_steps=60, tolerance=0.01)
    np.testing.assert_allclose(found.score, score(model(**inputs)), atol=1e-5)
    difference = found.score - found.baseline_score
    total = sum(x.sum(1) for x in found.tokens)
    np.testing.assert_allclose(total, difference, rtol=0.01, atol=1e-3)
    np.testing.assert_allclose(found.completeness_error, total - difference, atol=1e-6)
    assert np.abs(difference).min() > 0.05
    assert all(np.abs(x).max() > 1e-3 for x in found.tokens)
    # The first row's padding is seen by none of its tokens; of the second's two documents the
    # score is of the first.
    assert np.abs(found.tokens[0][0, 10:]).max() < 1e-5
    assert np.abs(found.tokens[0][1, 7:]).max() < 1e-5


def test_the_score_may_be_of_a_model_around_the_encoder(plain_encoder):
    model = small_models.Classifier(plain_encoder)
    inputs = small_models.inputs_of(plain_encoder.config)
    options = {"num_steps": 2, "tolerance": None}
    found = integrated_gradients(model, inputs, lambda logits: logits[:, 1], **options)
    np.testing.assert_allclose(found.score, model(inputs)[:, 1], atol=1e-4)


@pytest.mark.usefixtures("in_graphs")
@pytest.mark.slow
def test_in_bfloat16_they_add_up_as_well_as_its_rounding_lets_them():
    model = small_models.make_encoder(num_layers=1, dtype="mixed_bfloat16")
    inputs = small_models.inputs_of(model.config)
    found = integrated_gradients(
        model, inputs, lambda outputs: outputs[0][:, 0, 0], num_steps=60, tolerance=None
    )
    magnitude = sum(np.abs(x).sum(1) for x in found.tokens)
    assert np.all(np.abs(found.completeness_error) < 0.1 * magnitude)


@pytest.mark.slow
def test_too_few_steps_are_refused_and_the_numbers_are_told(plain_encoder):
    inputs = small_models.inputs_of(plain_encoder.config)
    message = "attributions of example 0 sum to .* Take more steps than 1, or another baseline"
    with pytest.raises(ValueError, match=message):
        integrated_gradients(plain_encoder, inputs, of_first_token, num_steps=1, tolerance=1e-4)


@pytest.mark.parametrize(
    "score, message",
    [
        (lambda outputs: tf.reduce_sum(outputs[0]), r"one number for each of 2 .* shape \(\)"),
        (lambda outputs: outputs[0][:, 0], r"one number for each of 2 .* shape \(2, 8\)"),
        (lambda outputs: tf.zeros(2), "does not reach the token embeddings"),
    ],
)
def test_scores_that_are_none_are_refused(plain_encoder, score, message):
    inputs = small_models.inputs_of(plain_encoder.config)
    with pytest.raises(ValueError, match=message):
        integrated_gradients(plain_encoder, inputs, score, num_steps=1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"baseline_id": 11}, "`baseline_id` must be from 0 to 10. Received: 11"),
        ({"num_steps": 0}, "`num_steps` must be at least 1. Received: 0"),
    ],
)
def test_numbers_out_of_range_are_refused(plain_encoder, options, message):
    inputs = small_models.inputs_of(plain_encoder.config)
    with pytest.raises(ValueError, match=message):
        integrated_gradients(plain_encoder, inputs, of_first_token, **options)
