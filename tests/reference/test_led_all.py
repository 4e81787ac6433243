"""All cases of LED, of which `test_led.py` has a sample; a few in graphs, too, and by XLA."""

import functools

import pytest
import tensorflow as tf

import etcmodel
from tests.reference import cases, led_cases, seq2seq_cases, ways

pytestmark = pytest.mark.slow
CASES = led_cases.load_cases()
OF_LOGITS = [case for case in CASES if not case["kind"].endswith("_generate")]
MAX_GLOBAL_TOKENS = 16


@pytest.mark.slow_cases(12)
@pytest.mark.reference(led_cases.TOPIC)
@pytest.mark.parametrize("case", CASES, ids=cases.case_id)
def test_case(case):
    led_cases.check(case)


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize(
    "case", [case for case in OF_LOGITS if case["name"] in led_cases.TRACED], ids=cases.case_id
)
def test_case_in_a_graph(case):
    led_cases.check(case, ways.GRAPH)


@functools.cache
def compiled(kind):
    folder = cases.topic_folder(led_cases.TOPIC) / kind
    model = etcmodel.from_pretrained(folder, max_global_tokens=MAX_GLOBAL_TOKENS)
    return tf.function(model, jit_compile=True, autograph=False)


@pytest.mark.parametrize("case", ways.marked_for_xla(OF_LOGITS, led_cases.TRACED))
@pytest.mark.slow_cases(1)
def test_case_under_xla(case):
    arrays = seq2seq_cases.arrays_of(led_cases.TOPIC, case)
    found = compiled(case["kind"])(**seq2seq_cases.inputs_of(arrays))
    for name in ("logits", "loss", "start_logits", "end_logits"):
        if f"out/{name}" in arrays:
            seq2seq_cases.assert_close(f"out/{name}", found[name].numpy(), arrays[f"out/{name}"])
