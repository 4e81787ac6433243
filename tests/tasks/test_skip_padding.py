"""With `skip_padding`, padding costs nothing and has no part in outputs and losses."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from etcmodel import inspection
from tests.models.random_weights import by_number
from tests.tasks import first_editions

pytestmark = pytest.mark.slow

SIZES = {"hidden_size": 8, "intermediate_size": 8, "initializer_range": 0.3}
# Whose outputs and losses give padding a part unless it is skipped.
COUNTING_PADDING = {"hotpotqa", "nq"}


@functools.cache
def make_task(name, skip_padding=True):
    return first_editions.make(name, SIZES, skip_padding=skip_padding)


@functools.cache
def batch(name):
    """The first three records: dict of arrays, model's features and labels."""
    config = make_task(name).config.records()
    spec = {**config.model_features(), **config.label_features()}
    files = sorted(tf.io.gfile.glob(make_task(name).config.train_data))
    records = tf.data.TFRecordDataset(files).map(lambda x: tf.io.parse_single_example(x, spec))
    (features,) = records.batch(3).take(1)
    return {
        name: tf.cast(x, tf.int32) if x.dtype == tf.int64 else x for name, x in features.items()
    }


def longer(name, add):
    """The same examples with `add` more places of padding in both inputs."""
    config = make_task(name).config.records()
    fill, axes = config.padding, config.model_axes()
    features = dict(batch(name))
    for feature in axes:
        widths = [[0, 0], [0, add]]
        features[feature] = tf.pad(features[feature], widths, constant_values=fill.get(feature, 0))
    if "supporting_facts" in features:
        features["supporting_facts"] = tf.pad(features["supporting_facts"], [[0, 0], [0, add]])
    return features


@functools.cache
def model(name, skip_padding):
    return by_number(make_task(name, skip_padding).build_model())


def run(name, features, *, skip_padding=True):
    """(outputs, losses, gradients) of a training step."""
    task, made = make_task(name, skip_padding), model(name, skip_padding)

    with tf.GradientTape() as tape:
        outputs = made(features, training=True)
        losses = task.loss(outputs, features)
    gradients = tape.gradient(losses["loss"], made.trainable_variables)
    gradients = [tf.convert_to_tensor(x) for x in gradients if x is not None]
    return tf.nest.map_structure(lambda x: x.numpy(), (outputs, losses, gradients))


@functools.cache
def skipped(name):
    return run(name, batch(name))


@pytest.mark.parametrize("name", first_editions.TASKS)
def test_losses_and_gradients_are_the_same_for_any_length(name):
    _, losses, gradients = skipped(name)
    _, longer_losses, longer_gradients = run(name, longer(name, 37))
    for key, value in losses.items():
        np.testing.assert_allclose(longer_losses[key], value, rtol=1e-5, err_msg=key)
    for gradient, expected in zip(longer_gradients, gradients, strict=True):
        np.testing.assert_allclose(gradient, expected, atol=2e-5)


@pytest.mark.parametrize("name", first_editions.TASKS)
def test_real_tokens_have_the_logits_that_they_have_with_padding(name):
    outputs, losses, _ = skipped(name)
    expected, expected_losses, _ = run(name, batch(name), skip_padding=False)
    for key, value in outputs.items():
        if key.endswith("logits"):
            real = value > -9999  # Padding has no logits, or -1e9.
            assert real.any()
            np.testing.assert_allclose(value[real], expected[key][real], atol=2e-5, err_msg=key)
    same = np.isclose(losses["loss"], expected_losses["loss"], rtol=1e-5)
    assert same == (name not in COUNTING_PADDING)


@pytest.mark.parametrize("name", sorted(COUNTING_PADDING))
def test_padding_has_no_probability(name):
    outputs, _, _ = skipped(name)
    if name == "nq":
        is_real = np.cumsum(batch(name)["long_breakpoints"].numpy()[:, ::-1], 1)[:, ::-1] > 0
        assert not is_real.all() and np.all(outputs["sa_start_logits"][~is_real] == -1e9)
    else:
        ends = batch(name)["global_paragraph_breakpoints"].numpy()
        is_real = np.cumsum(ends[:, ::-1], 1)[:, ::-1] > 0
        assert not is_real.all() and np.all(outputs["supporting_facts_probs"][~is_real] == 0.0)


def test_contributions_are_to_what_the_model_itself_tells():
    made, features = model("hotpotqa", True), batch("hotpotqa")

    def score(outputs):
        return tf.reduce_sum(outputs["supporting_facts_probs"], -1)

    found = inspection.integrated_gradients(made, features, score, num_steps=1, tolerance=None)
    np.testing.assert_allclose(found.score, score(made(features, training=False)), rtol=1e-5)
    assert found.tokens[0].shape == features["long_token_ids"].shape
