"""How the cases of Longformer are run, and compared with the tolerances that belong to them."""

import numpy as np
import tensorflow as tf

import etcmodel
from etcmodel.checkpoints import hugging_face
from tests.reference import cases

TOPIC = "longformer"
# Of which a few are in the small copy and run each time: they show every rule of the attention.
SAMPLE = (
    "lift/longformer/long",
    "lift/longformer/same_as_source",
    "longformer/a_base/all_global",
    "longformer/a_base/gradients",
    "longformer/a_base/inputs_embeds",
    "longformer/a_base/length_1_global",
    "longformer/a_base/odd_length",
    "longformer/a_base/padding_left",
    "longformer/a_base/row_all_masked",
    "longformer/a_base/short",
    "longformer/a_mc/own_global",
    "longformer/a_mlm/no_global",
    "longformer/a_qa/outside",
    "longformer/a_seqcls_multilabel/bce",
    "longformer/a_tokcls/global",
)
# And these are run in graphs, too, and compiled, among the slow tests.
TRACED = (
    "longformer/a_base/gradients",
    "longformer/a_base/odd_length",
    "longformer/a_base/padding_left",
    "longformer/a_tokcls/global",
)
_LIMITS = {"logits": 1e-4, "loss": 1e-4}
_HIDDEN, _GRADIENTS = 5e-5, 2e-4
_PADDING_ROW = 1  # Hugging Face's tables give it no gradient.


def inputs_of(arrays, *left_out):
    """The arguments by name, as tensors."""
    names = [name.removeprefix("in/") for name in arrays if name.startswith("in/")]
    return {name: tf.constant(arrays[f"in/{name}"]) for name in names if name not in left_out}


def model_of(case):
    """The model of a case, loaded from its folder as users do it."""
    folder = cases.topic_folder(TOPIC) / case["kind"]
    return etcmodel.from_pretrained(folder)


def assert_same(results, arrays, prefix="out/"):
    """Compares all arrays of a case; NaN stands for what means nothing."""
    wanted = {name: x for name, x in arrays.items() if name.startswith(prefix)}
    assert set(results) == set(wanted)
    for name, value in wanted.items():
        assert results[name].shape == value.shape, name
        limit = _LIMITS.get(name.split("/")[1], _HIDDEN) * max(1.0, np.nanmax(np.abs(value)))
        is_known = ~np.isnan(value)
        difference = np.abs(results[name] - value)[is_known]
        assert difference.max(initial=0) <= limit, (name, difference.max())


def gradients(model, tape, loss):
    """The gradients of all weights by their names in Hugging Face's files, shaped as there."""
    places = hugging_face.places(model)
    found = tape.gradient(loss, [place.variable for place in places.values()])
    by_name = {}
    for (name, place), gradient in zip(places.items(), found, strict=True):
        value = tf.zeros(place.variable.shape) if gradient is None else gradient
        value = tf.convert_to_tensor(value)
        by_name[f"grad/{name}"] = tf.transpose(value) if place.is_transposed else value
    return by_name


def assert_same_gradients(found, arrays):
    """Compares what `gradients` gave."""
    wanted = {name: x for name, x in arrays.items() if name.startswith("grad/")}
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        rows = np.arange(len(value))
        if "_embeddings" in name and "token_type" not in name:
            rows = rows[rows != _PADDING_ROW]
        # The bias of all keys changes no softmax: its gradient is 0 but for rounding.
        largest = name.replace("key.bias", "key.weight").replace("key_global.bias", "key.weight")
        limit = _GRADIENTS * np.abs(wanted[largest]).max() + 1e-6
        difference = np.abs(found[name].numpy() - value)[rows].max(initial=0)
        assert difference <= limit, (name, difference, limit)
