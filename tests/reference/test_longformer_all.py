"""All cases of Longformer, of which `test_longformer.py` and its sibling have a sample.

A few in graphs, too, and by XLA.
"""

import pytest
import tensorflow as tf

import etcmodel
from tests.reference import cases, longformer_cases, test_longformer, test_longformer_heads, ways

pytestmark = pytest.mark.slow


def in_graphs(found):
    return [case for case in found if case["name"] in longformer_cases.TRACED]


@pytest.mark.slow_cases(20)
@pytest.mark.reference(test_longformer.TOPIC)
@pytest.mark.parametrize("case", test_longformer.CASES, ids=cases.case_id)
def test_encoder(case):
    test_longformer.check(case)


@pytest.mark.slow_cases(8)
@pytest.mark.reference(test_longformer.TOPIC)
@pytest.mark.parametrize("case", test_longformer_heads.CASES, ids=cases.case_id)
def test_head(case):
    test_longformer_heads.check(case)


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("case", in_graphs(test_longformer.CASES), ids=cases.case_id)
def test_encoder_in_a_graph(case):
    test_longformer.check(case, ways.GRAPH)


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("case", in_graphs(test_longformer_heads.CASES), ids=cases.case_id)
def test_head_in_a_graph(case):
    test_longformer_heads.check(case, way=ways.GRAPH)


@pytest.mark.parametrize(
    "case", ways.marked_for_xla(test_longformer.CASES, longformer_cases.TRACED)
)
def test_encoder_under_xla(case):
    arrays = longformer_cases.arrays_of(case)
    inputs = longformer_cases.inputs_of(arrays, "cotangent_hidden", "cotangent_pooler")
    length = arrays["out/last_hidden_state"].shape[1]  # As many as there can be.
    folder = cases.topic_folder(longformer_cases.TOPIC) / case["kind"]
    model = etcmodel.from_pretrained(folder, max_global_tokens=length)
    hidden, *_ = tf.function(model, jit_compile=True, autograph=False)(**inputs)
    found = {"out/last_hidden_state": hidden.numpy()}
    wanted = {name: x for name, x in arrays.items() if name in found or name.startswith("in/")}
    longformer_cases.assert_same(found, wanted)
