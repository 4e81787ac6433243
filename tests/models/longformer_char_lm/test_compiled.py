"""`CharLmModel` in graphs of every kind: trained, compiled by XLA, recomputed, exported."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.models.longformer_char_lm import char_models

pytestmark = pytest.mark.slow

MODEL = functools.cache(char_models.model)


def gradients_of(model, ids):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, 1:], model(ids[:, :-1]))
        loss = tf.reduce_mean(losses)
    return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, model.trainable_variables))]


@pytest.mark.parametrize("how", ["graph", "xla", "recomputed"])
@pytest.mark.slow_cases(1)
def test_every_way_gives_the_same_gradients(how):
    ids = tf.constant(char_models.ids(21))
    expected = gradients_of(MODEL(), ids)
    for variable, gradient in zip(MODEL().trainable_variables, expected[1:], strict=True):
        # Biases of keys change nothing: their gradients are rounding errors.
        assert np.any(gradient) or "/key/" in variable.name, variable.name
    model = MODEL(grad_checkpointing_period=1) if how == "recomputed" else MODEL()
    run = tf.function(
        functools.partial(gradients_of, model), jit_compile=how == "xla", autograph=False
    )
    for one, other in zip(run(ids), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.exhaustive
def test_equal_layers_are_one_loop_under_xla():
    """They are where windows are equal."""
    model = MODEL(attention_window=4, attention_dilation=((1, 2),) * 3)
    ids = tf.constant(char_models.ids(40))
    expected = gradients_of(model, ids)
    run = tf.function(functools.partial(gradients_of, model), jit_compile=True, autograph=False)
    for one, other in zip(run(ids), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.exhaustive
def test_an_exported_model_takes_any_length(tmp_path):
    module, spec = tf.Module(), tf.TensorSpec([None, None], tf.int32)
    module.model = MODEL()
    module.logits = tf.function(lambda ids: module.model(ids), [spec], autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    for length in (1, 30):
        ids = tf.constant(char_models.ids(length), tf.int32)
        np.testing.assert_allclose(served.logits(ids), MODEL()(ids), atol=1e-5)
