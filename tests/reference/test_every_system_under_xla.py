"""Cases of every system compiled by XLA: outputs, heads, gradients, generation.

A sample of each kind is among the slow tests, the others are among those of XLA.
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
    gmat_cases,
    led_cases,
    longformer_cases,
    longformer_encoders,
    longformer_heads,
    modernbert_cases,
    seq2seq_cases,
    t5_cases,
    ways,
)

BIGBIRDS = [x for x in bigbird_cases.all_cases() if x["kind"].startswith("bigbird/")]
OUTPUTS = ("logits", "loss", "start_logits", "end_logits", "encoder_last_hidden_state")
LED_LOOKUPS = ("led.shared.weight",)
MAX_GLOBAL_TOKENS = 16
# Of GMAT, of heads, of gradients and of generation.
SAMPLE = (
    "attention_13",
    "compression_06",
    "encoder_03",
    "led/a_generate/beam4_lp1_early",
    "led/a_generate/greedy_ngram2",
    "led/b_lm/global_uneven",
    "longformer/a_tokcls/global",
    "longt5/b_generate/greedy_ngram2",
    "longt5/d_lm/teacher_forcing",
    "longt5_08",
    "pegasus_x_05",
)

# All encoder-decoders.
SEQ2SEQS = [
    {**case, "topic": topic}
    for topic, found in (
        (t5_cases.TOPIC, cases.load_cases(t5_cases.TOPIC)),
        (led_cases.TOPIC, led_cases.load_cases()),
    )
    for case in found
]
GENERATION = [case for case in SEQ2SEQS if case["kind"].endswith("_generate")]
LOGITS = [case for case in SEQ2SEQS if case not in GENERATION]


def has_gradients(case):
    return any(name.startswith("grad/") for name in cases.arrays_of(case["topic"], case))


GRADIENTS = list(filter(has_gradients, LOGITS))


def each(found, sample=SAMPLE):
    return pytest.mark.parametrize("case", ways.marked_for_xla(found, sample))


def from_folder(topic, kind, **settings):
    return etcmodel.from_pretrained(cases.topic_folder(topic) / kind, **settings)


@functools.cache
def seq2seq(topic, kind):
    """A model; of LED's, with a known number of global tokens."""
    most = {"max_global_tokens": MAX_GLOBAL_TOKENS} if topic == led_cases.TOPIC else {}
    return from_folder(topic, kind, **most)


def compiled(function):
    return tf.function(function, jit_compile=True, autograph=False)


@each(gmat_cases.load(gmat_cases.COMPILED_KINDS))
def test_gmat(case):
    gmat_cases.check(case, is_compiled=True)


@each(BIGBIRDS, bigbird_cases.TRACED)
@pytest.mark.slow_cases(1)
def test_bigbird(case):
    bigbird_cases.check(case, ways.COMPILED)


@each(modernbert_cases.CASES, modernbert_cases.TRACED)
def test_modernbert(case):
    if "sparse" in case["kind"] and "labels" in case["name"]:
        pytest.skip("as many logits as there are labels: XLA knows no such shape")
    modernbert_cases.check(case, ways.COMPILED)


@each(longformer_encoders.CASES, longformer_cases.TRACED)
def test_longformer(case):
    arrays = cases.arrays_of(longformer_cases.TOPIC, case)
    inputs = longformer_cases.inputs_of(arrays, "cotangent_hidden", "cotangent_pooler")
    length = arrays["out/last_hidden_state"].shape[1]  # As many as there can be.
    model = from_folder(longformer_cases.TOPIC, case["kind"], max_global_tokens=length)
    hidden, *_ = compiled(model)(**inputs)
    found = {"out/last_hidden_state": hidden.numpy()}
    wanted = {name: x for name, x in arrays.items() if name in found or name.startswith("in/")}
    longformer_cases.assert_same(found, wanted)


@each(longformer_heads.CASES)
@pytest.mark.slow_cases(1)
def test_longformers_head(case):
    length = cases.arrays_of(longformer_cases.TOPIC, case)["in/input_ids"].shape[-1]
    model = from_folder(longformer_cases.TOPIC, case["kind"], max_global_tokens=length)
    longformer_heads.check(case, model, ways.COMPILED)


@functools.cache
def compiled_seq2seq(topic, kind):
    return compiled(seq2seq(topic, kind))


@each(LOGITS, (*led_cases.TRACED, *t5_cases.TRACED))
@pytest.mark.slow_cases(3)
def test_encoder_decoder(case):
    arrays = cases.arrays_of(case["topic"], case)
    found = compiled_seq2seq(case["topic"], case["kind"])(**seq2seq_cases.inputs_of(arrays))
    for name in OUTPUTS:
        if f"out/{name}" in arrays:
            seq2seq_cases.assert_close(f"out/{name}", found[name].numpy(), arrays[f"out/{name}"])


@each(GRADIENTS)
@pytest.mark.slow_cases(1)
def test_gradients(case):
    arrays = cases.arrays_of(case["topic"], case)
    model = seq2seq(case["topic"], case["kind"])
    gradients = seq2seq_cases.gradients_function(model, ways.COMPILED)
    lookups = LED_LOOKUPS if case["topic"] == led_cases.TOPIC else ()
    found = gradients(**seq2seq_cases.inputs_of(arrays))
    seq2seq_cases.assert_same_gradients(found, arrays, lookups)


@each(GENERATION)
@pytest.mark.slow_cases(2)
def test_generation(case):
    arrays = cases.arrays_of(case["topic"], case)
    settings = json.loads(str(arrays["in/settings"]))
    model = seq2seq(case["topic"], case["kind"])
    found = compiled(model.generate)(**seq2seq_cases.inputs_of(arrays), **settings)
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
