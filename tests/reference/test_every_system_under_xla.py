"""Cases of every system compiled by XLA; those of heads, gradients and generation elsewhere, too.

A sample is among the slow tests, the others are among those of XLA.
"""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from tests.reference import (
    bigbird_cases,
    cases,
    led_cases,
    longformer_cases,
    longformer_encoders,
    modernbert_cases,
    seq2seq_cases,
    t5_cases,
    ways,
)

BIGBIRDS = [x for x in bigbird_cases.all_cases() if x["kind"].startswith("bigbird/")]
OF_T5 = cases.load_cases(t5_cases.TOPIC)
# Beams are the same loop, compiled in the same way.
GREEDY = [case for case in OF_T5 if "_generate/greedy" in case["name"]]
OUTPUTS = ("logits", "loss", "start_logits", "end_logits", "encoder_last_hidden_state")
MAX_GLOBAL_TOKENS = 16


@pytest.mark.parametrize("case", ways.marked_for_xla(BIGBIRDS, bigbird_cases.TRACED))
@pytest.mark.slow_cases(1)
def test_bigbird(case):
    bigbird_cases.check(case, ways.COMPILED)


@pytest.mark.parametrize(
    "case", ways.marked_for_xla(modernbert_cases.CASES, modernbert_cases.TRACED)
)
def test_modernbert(case):
    if "sparse" in case["kind"] and "labels" in case["name"]:
        pytest.skip("as many logits as there are labels: XLA knows no such shape")
    modernbert_cases.check(case, ways.COMPILED)


@pytest.mark.parametrize(
    "case", ways.marked_for_xla(longformer_encoders.CASES, longformer_cases.TRACED)
)
def test_longformer(case):
    arrays = longformer_cases.arrays_of(case)
    inputs = longformer_cases.inputs_of(arrays, "cotangent_hidden", "cotangent_pooler")
    length = arrays["out/last_hidden_state"].shape[1]  # As many as there can be.
    folder = cases.topic_folder(longformer_cases.TOPIC) / case["kind"]
    model = etcmodel.from_pretrained(folder, max_global_tokens=length)
    hidden, *_ = tf.function(model, jit_compile=True, autograph=False)(**inputs)
    found = {"out/last_hidden_state": hidden.numpy()}
    wanted = {name: x for name, x in arrays.items() if name in found or name.startswith("in/")}
    longformer_cases.assert_same(found, wanted)


@functools.cache
def compiled(topic, kind):
    if topic == t5_cases.TOPIC:
        model = seq2seq_cases.model_of(topic, kind)
    else:
        folder = cases.topic_folder(topic) / kind
        model = etcmodel.from_pretrained(folder, max_global_tokens=MAX_GLOBAL_TOKENS)
    return tf.function(model, jit_compile=True, autograph=False)


def check_outputs(topic, case):
    arrays = seq2seq_cases.arrays_of(topic, case)
    found = compiled(topic, case["kind"])(**seq2seq_cases.inputs_of(arrays))
    for name in OUTPUTS:
        if f"out/{name}" in arrays:
            seq2seq_cases.assert_close(f"out/{name}", found[name].numpy(), arrays[f"out/{name}"])


def of_logits(found):
    return [case for case in found if not case["kind"].endswith("_generate")]


@pytest.mark.parametrize(
    "case", ways.marked_for_xla(of_logits(led_cases.load_cases()), led_cases.TRACED)
)
@pytest.mark.slow_cases(1)
def test_led(case):
    check_outputs(led_cases.TOPIC, case)


@pytest.mark.parametrize("case", ways.marked_for_xla(of_logits(OF_T5), t5_cases.TRACED))
def test_longt5_and_pegasus_x(case):
    check_outputs(t5_cases.TOPIC, case)


@pytest.mark.parametrize("case", ways.marked_for_xla(GREEDY, t5_cases.TRACED))
def test_greedy_search(case):
    arrays = seq2seq_cases.arrays_of(t5_cases.TOPIC, case)
    settings = json.loads(str(arrays["in/settings"]))
    model = seq2seq_cases.model_of(t5_cases.TOPIC, case["kind"])
    generate = tf.function(model.generate, jit_compile=True, autograph=False)
    found = generate(**seq2seq_cases.inputs_of(arrays), **settings)["sequences"].numpy()
    wanted = arrays["out/sequences"]  # As long as the longest; compiled ones have all places.
    assert found.shape == (len(wanted), settings["max_length"])
    np.testing.assert_array_equal(found[:, : wanted.shape[1]], wanted)
    assert not found[:, wanted.shape[1] :].any()
