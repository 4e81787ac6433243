"""Keras's files of masked language models, whose head had two names in earlier versions."""

import os
import zipfile

import h5py
import numpy as np
import pytest
import tf_keras

import etcmodel

SIZES = {"vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
TEXTS = SIZES | {"intermediate_size": 8, "max_position_embeddings": 40}
MODELS = {
    "etc": lambda: etcmodel.EtcForMaskedLM(etcmodel.EtcConfig(**SIZES)),
    "longformer": lambda: etcmodel.LongformerForMaskedLM(
        etcmodel.LongformerConfig(**TEXTS, attention_window=4)
    ),
    "gmat": lambda: etcmodel.GmatForMaskedLM(etcmodel.GmatConfig(**SIZES, chunk_size=4)),
}
NAMES = ("masked_lm", "private__masked_lm")  # By the first version, and for some time after.
WRITTEN = NAMES[0]


class Around(tf_keras.Model):
    def __init__(self, head):
        super().__init__()
        self.head = head


def made(name, seed):
    model, rng = MODELS[name](), np.random.default_rng(seed)
    model.set_weights([rng.normal(size=x.shape) for x in model.get_weights()])
    return model


def rename(path, name, inside=""):
    """Gives the head's weights in a file, `.keras` too, the path that another version wrote."""
    file = path
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as pack:
            members = {member: pack.read(member) for member in pack.namelist()}
        file = path.parent / "model.weights.h5"
        file.write_bytes(members["model.weights.h5"])
    with h5py.File(file, "a") as weights:
        parent = weights[f"{inside}layers"]
        assert WRITTEN in parent
        if name != WRITTEN:
            parent.move(WRITTEN, name)
    if path.suffix == ".keras":
        with zipfile.ZipFile(path, "w") as pack:
            for member, content in members.items():
                pack.writestr(member, file.read_bytes() if file.name == member else content)
        os.remove(file)


def assert_same_weights(model, other):
    for x, y in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_read_under_both_names_and_written_under_the_first(tmp_path, name):
    loaded, path = made(name, 0), tmp_path / "a.weights.h5"
    for seed, written in enumerate((*NAMES, *NAMES), start=1):  # One after the other, too.
        model = made(name, seed)
        model.save_weights(path)
        rename(path, written)
        loaded.load_weights(path)
        assert_same_weights(loaded, model)
        loaded.save_weights(again := tmp_path / "again.weights.h5")
        with h5py.File(again) as weights:
            assert WRITTEN in weights["layers"] and NAMES[1] not in weights["layers"]


@pytest.mark.parametrize("written", NAMES)
def test_whole_models_are_read_under_both_names(tmp_path, written):
    model, path = made("longformer", 1), tmp_path / "model.keras"
    model.compile()
    model.save(path)
    rename(path, written)
    loaded = tf_keras.models.load_model(path)
    assert_same_weights(loaded, model)
    loaded.save(tmp_path / "again.keras")
    assert_same_weights(tf_keras.models.load_model(tmp_path / "again.keras"), model)


@pytest.mark.parametrize("written", NAMES)
def test_a_head_is_read_within_another_model(tmp_path, written):
    model, path = made("etc", 1), tmp_path / "a.weights.h5"
    Around(model).save_weights(path)
    rename(path, written, "layers/etc_for_masked_lm/")
    loaded = made("etc", 2)
    Around(loaded).load_weights(path)
    assert_same_weights(loaded, model)
