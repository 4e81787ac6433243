"""What older Keras files name is found under the names that modules had."""

import importlib
import json

import pytest
import tf_keras

import etcmodel
from etcmodel import moved_modules
from etcmodel.training import optimizer


@pytest.mark.parametrize("old, new", moved_modules.MOVED.items())
def test_a_module_is_there_under_its_old_name(old, new):
    assert importlib.import_module(old) is importlib.import_module(new)


def as_of_old(value, old):
    """A Keras object's config, with the module that its class had."""
    config = tf_keras.saving.serialize_keras_object(value)
    text = json.dumps(config)
    assert moved_modules.MOVED[old] in text
    return json.loads(text.replace(moved_modules.MOVED[old], old))


@pytest.mark.parametrize(
    "old, make",
    [
        ("etcmodel.models.led.model", lambda: etcmodel.LedModel(etcmodel.LedConfig(d_model=16))),
        (
            "etcmodel.models.gmat.heads",
            lambda: etcmodel.GmatForMaskedLM(etcmodel.GmatConfig(hidden_size=12)),
        ),
    ],
)
def test_a_saved_model_of_that_time_is_loaded(old, make):
    made = make()
    loaded = tf_keras.saving.deserialize_keras_object(as_of_old(made, old))
    assert type(loaded) is type(made)
    assert loaded.get_config() == made.get_config()


def test_so_is_an_optimizer():
    made = optimizer.BertAdam(1e-3)
    config = tf_keras.saving.serialize_keras_object(made)
    config["module"] = "etcmodel.training.bert_adam"
    assert type(tf_keras.saving.deserialize_keras_object(config)) is optimizer.BertAdam
