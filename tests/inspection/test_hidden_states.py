"""Hidden states of all layers: those that the model computes, of every kind of layer."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.inspection import hidden_states
from tests.inspection import small_models


@pytest.mark.slow_cases(5)
@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("form", ["structure", "dense"])
@pytest.mark.parametrize("variant", small_models.VARIANTS)
def test_each_layer_gives_what_a_model_gives_that_ends_there(variant, form):
    changes = small_models.VARIANTS[variant]
    model = small_models.make_encoder(**changes)
    inputs = small_models.inputs_of(model.config, form)
    states = hidden_states(model, inputs)
    assert len(states) == 4
    for index, state in enumerate(states[1:], start=1):
        shorter = model if index == 3 else small_models.make_encoder(num_layers=index, **changes)
        for x, expected in zip(state, shorter(**inputs), strict=True):
            np.testing.assert_allclose(x, expected, atol=1e-5)
            assert np.abs(x).max() > 0.1


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("implementation", ["auto", "sparse", "full"])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_the_last_ones_are_the_output_and_the_first_ones_the_embeddings(policy, implementation):
    model = small_models.make_encoder(dtype=policy)
    inputs = small_models.inputs_of(model.config)
    inputs["att_implementation"] = implementation
    states = hidden_states(model, inputs)
    for x, expected in zip(states[-1], model(**inputs), strict=True):
        assert x.dtype == expected.dtype
        np.testing.assert_array_equal(x, expected)
    embedded = model.token_emb_lookup(inputs["token_ids"])
    embedded += model.segment_emb_lookup(inputs["segment_ids"])
    np.testing.assert_array_equal(states[0][0], model.long_emb_layer_norm(embedded))


def test_a_model_around_the_encoder_is_called_as_it_is():
    encoder = small_models.make_encoder()
    inputs = small_models.inputs_of(encoder.config)
    states = hidden_states(small_models.Classifier(encoder), inputs)
    for state, expected in zip(states, hidden_states(encoder, inputs), strict=True):
        for x, y in zip(state, expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_there_is_no_dropout_and_the_model_goes_on_as_before():
    model = small_models.make_encoder(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    inputs = small_models.inputs_of(model.config)
    before = model(**inputs)
    states = hidden_states(model, {**inputs, "training": True})
    after = model(**inputs)
    for outputs in (states[-1], after):
        for x, expected in zip(outputs, before, strict=True):
            np.testing.assert_array_equal(x, expected)


def test_what_cannot_be_looked_into_is_refused():
    model = small_models.make_encoder()
    inputs = small_models.inputs_of(model.config)
    with pytest.raises(ValueError, match="needs eager execution"):
        tf.function(lambda: hidden_states(model, inputs))()
    with pytest.raises(ValueError, match="'dense' holds no encoder"):
        hidden_states(tf_keras.layers.Dense(1, name="dense"), inputs)
    with pytest.raises(ValueError, match="must be a dict of the encoder's arguments"):
        hidden_states(model, inputs["token_ids"])
