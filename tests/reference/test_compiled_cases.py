"""Cases compiled by XLA: of GMAT, Longformer's heads, gradients of encoder-decoders, generation.

A sample of each kind is among the slow tests, the others are among those of XLA. Outputs of other
models are in `test_every_system_under_xla.py`.
"""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from tests.reference import (
    cases,
    gmat_cases,
    led_cases,
    longformer_cases,
    longformer_heads,
    seq2seq_cases,
    t5_cases,
    ways,
)

LED_LOOKUPS = ("led.shared.weight",)
MAX_GLOBAL_TOKENS = 16
SAMPLE = (
    "attention_13",
    "compression_06",
    "encoder_03",
    "led/a_generate/beam4_lp1_early",
    "led/a_generate/greedy_ngram2",
    "led/b_lm/global_uneven",
    "longformer/a_tokcls/global",
    "longt5/d_lm/teacher_forcing",
    "longt5_08",
    "pegasus_x_05",
)

marked = functools.partial(ways.marked_for_xla, sample=SAMPLE)


def of_models():
    """(topic, case) of all encoder-decoders."""
    of_t5 = [(t5_cases.TOPIC, case) for case in cases.load_cases(t5_cases.TOPIC)]
    return of_t5 + [(led_cases.TOPIC, case) for case in led_cases.load_cases()]


def has_gradients(topic, case):
    return any(name.startswith("grad/") for name in seq2seq_cases.arrays_of(topic, case))


GRADIENTS = [
    {**case, "topic": topic}
    for topic, case in of_models()
    if not case["kind"].endswith("_generate") and has_gradients(topic, case)
]
# Greedy search of LongT5 and PEGASUS-X is in `test_every_system_under_xla.py`.
GENERATION = [
    {**case, "topic": topic}
    for topic, case in of_models()
    if case["kind"].endswith("_generate")
    and not (topic == t5_cases.TOPIC and "/greedy" in case["name"])
]


def model_of(case):
    folder = cases.topic_folder(case["topic"]) / case["kind"]
    is_led = case["topic"] == led_cases.TOPIC
    return etcmodel.from_pretrained(
        folder, **({"max_global_tokens": MAX_GLOBAL_TOKENS} if is_led else {})
    )


@pytest.mark.parametrize("case", marked(gmat_cases.load(gmat_cases.COMPILED_KINDS)))
def test_gmat(case):
    gmat_cases.check(case, is_compiled=True)


@pytest.mark.parametrize("case", marked(longformer_heads.CASES))
@pytest.mark.slow_cases(1)
def test_head(case):
    length = longformer_cases.arrays_of(case)["in/input_ids"].shape[-1]
    folder = cases.topic_folder(longformer_cases.TOPIC) / case["kind"]
    model = etcmodel.from_pretrained(folder, max_global_tokens=length)
    longformer_heads.check(case, model, ways.COMPILED)


@pytest.mark.parametrize("case", marked(GRADIENTS))
@pytest.mark.slow_cases(1)
def test_gradients(case):
    arrays = seq2seq_cases.arrays_of(case["topic"], case)
    gradients = seq2seq_cases.gradients_function(model_of(case), ways.COMPILED)
    lookups = LED_LOOKUPS if case["topic"] == led_cases.TOPIC else ()
    found = gradients(**seq2seq_cases.inputs_of(arrays))
    seq2seq_cases.assert_same_gradients(found, arrays, lookups)


@pytest.mark.parametrize("case", marked(GENERATION))
@pytest.mark.slow_cases(1)
def test_generation(case):
    arrays = seq2seq_cases.arrays_of(case["topic"], case)
    settings = json.loads(str(arrays["in/settings"]))
    model = model_of(case)
    generate = tf.function(model.generate, jit_compile=True, autograph=False)
    found = generate(**seq2seq_cases.inputs_of(arrays), **settings)
    wanted = arrays["out/sequences"]  # As long as the longest; compiled ones have all places.
    sequences = found["sequences"].numpy()
    assert sequences.shape == (len(wanted), settings["max_length"])
    np.testing.assert_array_equal(sequences[:, : wanted.shape[1]], wanted)
    assert (sequences[:, wanted.shape[1] :] == model.config.pad_token_id).all()
    if "out/sequences_scores" in arrays:
        scores = found["sequences_scores"].numpy()
        name = "out/sequences_scores"
        seq2seq_cases.assert_close(name, scores, arrays[name])


@pytest.mark.slow
def test_the_sample_is_of_each_kind():
    known = {case["name"] for case in (*gmat_cases.load(), *GRADIENTS, *GENERATION)}
    known |= {case["name"] for case in longformer_heads.CASES}
    assert set(SAMPLE) <= known
