"""Dilated and causal windows against the float64 values of the reference."""

import json

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import sliding_window
from etcmodel.ops.reach import Window
from tests.reference import cases

FOLDER = cases.topic_folder("longformer") / "dilated"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())
# Those of the char LM have relative positions, too, which there are none of here.
CASES = {name: case for name, case in MANIFEST.items() if "causal" in case}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    case = CASES[name]
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        arrays = dict(arrays)
    radius, right = case["one_sided"], 0 if case["causal"] else case["one_sided"]
    windows = [Window(radius, right, dilation) for dilation in case["dilation"]]
    options = {}
    if "in/valid" in arrays:
        options["token_mask"] = tf.constant(arrays["in/valid"])
    if "in/is_global" in arrays:
        options["global_tokens"] = sliding_window.find_global_tokens(
            tf.constant(arrays["in/is_global"])
        )
    inputs = [tf.constant(arrays[f"in/{x}"], tf.float32) for x in "qkv"]
    cotangent = arrays["in/cotangent"].astype(np.float32)

    @tf.function(autograph=False)
    def run(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            output = sliding_window.attend(*inputs, windows, **options)
            loss = tf.reduce_sum(output * cotangent)
        return output, tape.gradient(loss, inputs)

    output, gradients = run(*inputs)
    np.testing.assert_allclose(output, arrays["out/out"], atol=1e-5)
    for name, gradient in zip("qkv", gradients, strict=True):
        np.testing.assert_allclose(gradient, arrays[f"grad/d{name}"], atol=1e-5)
    probs = sliding_window.attention_probs(*inputs[:2], windows, **options)
    banded = np.moveaxis(probs, 1, 2)[..., -len(arrays["out/probs_banded"][0, 0, 0]) :]
    np.testing.assert_allclose(banded, arrays["out/probs_banded"], atol=1e-5)
