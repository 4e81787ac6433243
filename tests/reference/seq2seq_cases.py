"""How the cases of models with an encoder and a decoder are run, and compared with them."""

import functools
import json
import re

import numpy as np
import tensorflow as tf

import etcmodel
from etcmodel.checkpoints import hugging_face
from tests.reference import cases, ways

_RELATIVE = ("logits", "loss", "step_scores", "sequences_scores", "start_logits", "end_logits")
_LIMITS = dict.fromkeys(_RELATIVE, 1e-4)
_HIDDEN, _GRADIENTS = 5e-5, 2e-4
_PADDING_ROW = 1  # Of the models that have such tables.
_KEY_BIAS = re.compile(r"(.*\.(?:key|key_global|k_proj))\.bias")
# What they tell of the blocks is in `test_transient_blocks.py`.
_NOT_OUTPUTS = ("out/block_ids", "out/global_used")


def inputs_of(arrays):
    """The arguments by name, as tensors."""
    names = [name.removeprefix("in/") for name in arrays if name.startswith("in/")]
    names = [name for name in names if name not in ("settings", "training")]
    inputs = {name: tf.constant(arrays[f"in/{name}"]) for name in names}
    plans = [name for name in arrays if name.startswith("plan/")]
    if plans and "in/training" not in arrays:  # In training the model has them itself.
        by_layer = [arrays[f"plan/{number}"] for number in range(len(plans))]
        inputs["random_blocks"] = tf.constant(np.stack(by_layer), tf.int32)
    return inputs


@functools.cache
def model_of(topic, kind):
    """A model, loaded from its folder as users do it."""
    return etcmodel.from_pretrained(cases.topic_folder(topic) / kind)


@functools.cache
def functions_of(topic, kind, way):
    """Functions of a model's arguments to all outputs, and to loss and gradients."""
    model = model_of(topic, kind)

    def outputs(with_states, with_attentions, training=False, **inputs):
        wanted = {"output_hidden_states": with_states, "output_attentions": with_attentions}
        return model(**inputs, **wanted, training=training)

    return ways.in_way(way, outputs), gradients_function(model, way)


def gradients_function(model, way):
    """A function of a model's arguments to the gradients of all weights, by their names."""

    def gradients(training=False, **inputs):
        weights = hugging_face.places(model)
        weights = {name: x for name, x in weights.items() if x.variable.trainable}
        with tf.GradientTape() as tape:
            loss = model(**inputs, training=training)["loss"]
        found = tape.gradient(
            loss, [x.variable for x in weights.values()], unconnected_gradients="zero"
        )
        found = dict(zip(weights, map(tf.convert_to_tensor, found), strict=True))
        return {
            name: tf.transpose(x) if weights[name].is_transposed else x for name, x in found.items()
        }

    return ways.in_way(way, gradients)


def check(topic, case, lookups=(), way=ways.EAGER):
    """Runs a case, and compares all that it has.

    Args:
        topic: str.
        case: dict.
        lookups: names of tables whose row of padding got no gradient by PyTorch.
        way: one of `ways`, but not compiled. A graph of outputs is for any batch and lengths, one
            of gradients for those of the case. Generation is a graph of its own.
    """
    if case["kind"].endswith("_generate"):
        _check_generation(topic, case)
    else:
        _check_outputs(topic, case, lookups, way)


def _check_outputs(topic, case, lookups, way):
    arrays = cases.arrays_of(topic, case)
    outputs, gradients = functions_of(topic, case["kind"], way)
    inputs = inputs_of(arrays)
    results = {}
    # What nobody looks at only takes time to trace.
    names = " ".join(arrays)
    flags = {"with_states": "hidden_states/" in names, "with_attentions": "attentions/" in names}
    training = {"training": True} if "in/training" in arrays else {}
    flags |= training
    if way == ways.GRAPH:
        of_any = {x: tf.TensorSpec([None] * len(y.shape), y.dtype) for x, y in inputs.items()}
        outputs = outputs.get_concrete_function(**flags, **of_any)
    else:
        outputs = functools.partial(outputs, **flags)
    for name, value in outputs(**inputs).items():
        values = {f"out/{name}": value}
        if isinstance(value, tuple):
            values = {f"out/{name}/{number}": x for number, x in enumerate(value)}
        results |= values
    wanted = {name for name in arrays if name.startswith("out/")} - set(_NOT_OUTPUTS)
    assert wanted <= set(results)
    for name in wanted:
        assert_close(name, results[name].numpy(), arrays[name])
    if any(name.startswith("grad/") for name in arrays):
        assert_same_gradients(gradients(**inputs, **training), arrays, lookups)


def assert_same_gradients(found, arrays, lookups=()):
    """Compares what a `gradients_function` gave; for `lookups` see `check`."""
    wanted = {name.removeprefix("grad/") for name in arrays if name.startswith("grad/")}
    assert set(found) == set(wanted)
    for name in wanted:
        # Where PyTorch leaves a row of padding out, that of all is stored, too.
        value = arrays.get(f"grad_full/{name}", arrays[f"grad/{name}"])
        rows = np.arange(len(value))
        rows = rows[rows != _PADDING_ROW] if name in lookups else rows
        # The bias of all keys changes no softmax: its gradient is 0 but for rounding.
        largest = arrays["grad/" + _KEY_BIAS.sub(r"\1.weight", name)]
        difference = np.abs(found[name].numpy() - value)[rows].max()
        assert difference <= _GRADIENTS * np.abs(largest).max() + 1e-6, (name, difference)


def _check_generation(topic, case):
    arrays = cases.arrays_of(topic, case)
    settings = json.loads(str(arrays["in/settings"]))
    found = model_of(topic, case["kind"]).generate(
        **inputs_of(arrays), with_scores="out/step_scores" in arrays, **settings
    )
    np.testing.assert_array_equal(found["sequences"], arrays["out/sequences"])
    for name in ("sequences_scores", "step_scores"):
        if f"out/{name}" in arrays:
            assert_close(f"out/{name}", found[name].numpy(), arrays[f"out/{name}"])


def assert_close(name, found, wanted):
    """Compares an output; NaN stands for what means nothing."""
    assert found.shape == wanted.shape, name
    is_known = ~np.isnan(wanted)
    found, wanted = found[is_known], wanted[is_known]
    is_finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~is_finite], wanted[~is_finite], name)
    found, wanted = found[is_finite], wanted[is_finite]
    limit = _LIMITS.get(name.split("/")[1], _HIDDEN) * max(1.0, np.abs(wanted).max(initial=0))
    assert np.abs(found - wanted).max(initial=0) <= limit, name
