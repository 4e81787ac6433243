"""How the cases of LongT5 and PEGASUS-X are run, and compared with the tolerances of theirs."""

import functools
import json

import numpy as np
import tensorflow as tf

import etcmodel
from tests.reference import cases

TOPIC = "t5"
# Of which the small copy has these, which are run each time.
SAMPLE = (
    "longt5/b_generate/beam4_return3",
    "longt5/b_generate/greedy_ngram2",
    "longt5/d_lm/holes",
    "longt5/d_lm/left_padding",
    "longt5/d_lm/teacher_forcing",
    "pegasus_x/a_generate/beam4_return3",
    "pegasus_x/a_generate/greedy_ngram2",
    "pegasus_x/b_lm/decoder_mask",
    "pegasus_x/c_lm/teacher_forcing",
)
_LIMITS = {"logits": 1e-4, "loss": 1e-4, "step_scores": 1e-4, "sequences_scores": 1e-4}
_HIDDEN, _GRADIENTS = 5e-5, 2e-4
# What they tell of the blocks is in `test_transient_blocks.py`.
_NOT_OUTPUTS = ("out/block_ids", "out/global_used")


def arrays_of(case):
    with np.load(cases.resolve(TOPIC, case["file"]), allow_pickle=False) as arrays:
        return dict(arrays)


def inputs_of(arrays):
    """The arguments by name, as tensors."""
    names = [name.removeprefix("in/") for name in arrays if name.startswith("in/")]
    return {name: tf.constant(arrays[f"in/{name}"]) for name in names if name != "settings"}


def folder_of(kind):
    return cases.topic_folder(TOPIC) / kind


@functools.cache
def model_of(kind):
    """A model, loaded from its folder as users do it."""
    return etcmodel.from_pretrained(folder_of(kind))


@functools.cache
def functions_of(kind):
    """The model, and functions of its arguments to all outputs, and to loss and gradients."""
    model = model_of(kind)

    @tf.function(autograph=False)
    def outputs(**inputs):
        return model(**inputs, output_hidden_states=True, output_attentions=True)

    @tf.function(autograph=False)
    def gradients(**inputs):
        weights = model.weights_by_name()
        with tf.GradientTape() as tape:
            loss = model(**inputs)["loss"]
        found = tape.gradient(loss, [weight.variable for weight in weights.values()])
        found = dict(zip(weights, map(tf.convert_to_tensor, found), strict=True))
        return {
            name: tf.transpose(x) if weights[name].is_transposed else x for name, x in found.items()
        }

    return model, outputs, gradients


def check(case):
    """Runs a case, and compares all that it has."""
    (_check_generation if case["kind"].endswith("_generate") else _check_outputs)(case)


def _check_outputs(case):
    arrays = arrays_of(case)
    _, outputs, gradients = functions_of(case["kind"])
    inputs = inputs_of(arrays)
    results = {}
    # Of any batch and lengths; the gradients are of those that are known.
    specs = {name: tf.TensorSpec([None] * len(x.shape), x.dtype) for name, x in inputs.items()}
    for name, value in outputs.get_concrete_function(**specs)(**inputs).items():
        values = {f"out/{name}": value}
        if isinstance(value, tuple):
            values = {f"out/{name}/{number}": x for number, x in enumerate(value)}
        results |= values
    wanted = {name for name in arrays if name.startswith("out/")} - set(_NOT_OUTPUTS)
    assert wanted <= set(results)
    for name in wanted:
        assert_close(name, results[name].numpy(), arrays[name])
    if any(name.startswith("grad/") for name in arrays):
        found = gradients(**inputs)
        wanted = {name.removeprefix("grad/") for name in arrays if name.startswith("grad/")}
        assert set(found) == wanted
        for name in wanted:
            # Where PyTorch leaves a row of padding out, that of all is stored, too.
            value = arrays.get(f"grad_full/{name}", arrays[f"grad/{name}"])
            difference = np.abs(found[name].numpy() - value).max()
            assert difference <= _GRADIENTS * np.abs(value).max() + 1e-6, name


def _check_generation(case):
    arrays = arrays_of(case)
    settings = json.loads(str(arrays["in/settings"]))
    found = model_of(case["kind"]).generate(
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
