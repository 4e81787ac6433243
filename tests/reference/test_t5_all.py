"""All cases of LongT5 and PEGASUS-X, of which `test_t5.py` has a sample.

A few in graphs, too, and by XLA.
"""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

from tests.reference import cases, seq2seq_cases, t5_cases, ways

pytestmark = pytest.mark.slow
CASES = cases.load_cases(t5_cases.TOPIC)
OF_LOGITS = [case for case in CASES if not case["kind"].endswith("_generate")]
# Beams are the same loop, compiled in the same way.
GREEDY = [case for case in CASES if "_generate/greedy" in case["name"]]


@pytest.mark.slow_cases(24)
@pytest.mark.reference(t5_cases.TOPIC)
@pytest.mark.parametrize("case", CASES, ids=cases.case_id)
def test_case(case):
    t5_cases.check(case)


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize(
    "case", [case for case in OF_LOGITS if case["name"] in t5_cases.TRACED], ids=cases.case_id
)
def test_case_in_a_graph(case):
    t5_cases.check(case, ways.GRAPH)


@functools.cache
def compiled(kind):
    model = seq2seq_cases.model_of(t5_cases.TOPIC, kind)
    return tf.function(model, jit_compile=True, autograph=False)


@pytest.mark.parametrize("case", ways.marked_for_xla(OF_LOGITS, t5_cases.TRACED))
def test_case_under_xla(case):
    arrays = seq2seq_cases.arrays_of(t5_cases.TOPIC, case)
    found = compiled(case["kind"])(**seq2seq_cases.inputs_of(arrays))
    for name in ("logits", "loss", "encoder_last_hidden_state"):
        if f"out/{name}" in arrays:
            seq2seq_cases.assert_close(f"out/{name}", found[name].numpy(), arrays[f"out/{name}"])


@pytest.mark.parametrize("case", ways.marked_for_xla(GREEDY, t5_cases.TRACED))
def test_greedy_search_under_xla(case):
    arrays = seq2seq_cases.arrays_of(t5_cases.TOPIC, case)
    settings = json.loads(str(arrays["in/settings"]))
    model = seq2seq_cases.model_of(t5_cases.TOPIC, case["kind"])
    generate = tf.function(model.generate, jit_compile=True, autograph=False)
    found = generate(**seq2seq_cases.inputs_of(arrays), **settings)["sequences"].numpy()
    wanted = arrays["out/sequences"]  # As long as the longest; compiled ones have all places.
    assert found.shape == (len(wanted), settings["max_length"])
    np.testing.assert_array_equal(found[:, : wanted.shape[1]], wanted)
    assert not found[:, wanted.shape[1] :].any()
