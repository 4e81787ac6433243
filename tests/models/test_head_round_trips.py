"""Heads in every format of Keras, under every precision, on several devices."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.models import heads
from tests.models import head_cases

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def seed():
    tf_keras.utils.set_random_seed(0)


@pytest.fixture(params=["float32", "mixed_bfloat16", "mixed_float16"])
def policy(request):
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(request.param)
    yield request.param
    tf_keras.mixed_precision.set_global_policy(before)


def trained(name, run_eagerly=False):
    model = head_cases.make(name)
    model.compile(tf_keras.optimizers.Adam(1e-2), run_eagerly=run_eagerly)
    features, labels = head_cases.data(name, 32)
    model.fit(features, labels, batch_size=16, verbose=0)
    return model


def assert_same_model(loaded, model, name):
    loaded.run_eagerly = model.run_eagerly
    features, labels = head_cases.data(name, 32)
    expected, actual = (one.predict(features, verbose=0) for one in (model, loaded))
    tf.nest.map_structure(np.testing.assert_array_equal, actual, expected)
    expected, actual = (one.evaluate(features, labels, verbose=0) for one in (model, loaded))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    loaded.fit(features, labels, batch_size=16, verbose=0)  # It goes on.


FORMATS = ("model.keras", "model.h5", "saved_model")


def saved_and_loaded(model, path):
    model.save(str(path), **({"save_traces": False} if path.name == "saved_model" else {}))
    loaded = tf_keras.models.load_model(str(path))
    assert isinstance(loaded, heads.HeadModel) == (path.name != "model.h5")
    return loaded


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("file_name", FORMATS)
@pytest.mark.parametrize("name", ["sequence", "question", "phrases"])
def test_a_model_is_loaded_from_every_format_and_goes_on(tmp_path, name, file_name):
    is_traced = (name, file_name) == ("question", "model.keras")  # Once; it takes far longer.
    model = trained(name, run_eagerly=not is_traced)
    assert_same_model(saved_and_loaded(model, tmp_path / file_name), model, name)


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("name", ["candidates", "choices", "masked", "sentence", "token"])
def test_every_other_head_is_loaded_from_every_format(tmp_path, name):
    model = trained(name, run_eagerly=True)
    features, _ = head_cases.data(name, 8)
    expected = model.predict(features, verbose=0)
    for file_name in FORMATS:
        loaded = saved_and_loaded(model, tmp_path / file_name)
        loaded.run_eagerly = True
        actual = loaded.predict(features, verbose=0)
        tf.nest.map_structure(np.testing.assert_array_equal, actual, expected)


def test_weights_alone(tmp_path):
    model = trained("question", run_eagerly=True)
    features, _ = head_cases.data("question", 4)
    expected = model(features)
    for file_name in ("model.weights.h5", "model.ckpt"):
        model.save_weights(str(tmp_path / file_name))
        other = head_cases.make("question")
        other.load_weights(str(tmp_path / file_name))
        tf.nest.map_structure(np.testing.assert_array_equal, other(features), expected)


@pytest.mark.exhaustive
def test_precision(policy, tmp_path):
    model = trained("sequence")
    features, labels = head_cases.data("sequence")
    history = model.fit(features, labels, epochs=10, batch_size=32, verbose=0).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    logits = model(features)
    assert logits.dtype == tf.float32
    hidden, _ = model.encoder(**model.encoder.structure(features))
    assert hidden.dtype == tf_keras.mixed_precision.Policy(policy).compute_dtype
    model.save(str(tmp_path / "model.keras"))
    loaded = tf_keras.models.load_model(str(tmp_path / "model.keras"))
    np.testing.assert_array_equal(loaded(features), logits)


def test_a_mirrored_strategy():
    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    try:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], devices
        )
    except RuntimeError:
        devices = devices[:1]  # TensorFlow has begun: one replica.
    names = [device.name for device in tf.config.list_logical_devices("CPU")]
    strategy = tf.distribute.MirroredStrategy(names)
    with strategy.scope():
        model = head_cases.make("sequence")
        model.compile(tf_keras.optimizers.Adam(1e-2))
    features, labels = head_cases.data("sequence")
    history = model.fit(features, labels, epochs=10, batch_size=32, verbose=0).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
