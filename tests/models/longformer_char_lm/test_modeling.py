"""`CharLmModel` against its slow twin; what holds for others, too, is in `test_every_encoder`."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import etcmodel
from tests.checkpoints import tensor_files
from tests.models.longformer_char_lm import char_models

MODEL = functools.cache(char_models.model)


@pytest.mark.parametrize("length", [1, 9, 30])
def test_logits_are_those_of_the_slow_twin(length):
    ids = char_models.ids(length)
    found = MODEL()(ids)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, char_models.logits(MODEL(), ids), atol=1e-4)


def test_a_character_sees_as_far_as_all_windows_reach():
    """Of the second head of the last layer, with gaps of 2: 2 + 3 + 2 * 5 before it."""
    ids = char_models.ids(40, batch=1)
    reach = 2 + 3 + 2 * 5
    changed = {}
    for place in (39 - reach, 39 - reach - 1):
        others = ids.copy()
        others[0, place] = (others[0, place] + 1) % 11
        changed[place] = not np.array_equal(MODEL()(ids)[0, 39], MODEL()(others)[0, 39])
    assert changed == {39 - reach: True, 39 - reach - 1: False}


def test_only_distances_matter():
    """What is read from farther on in a text is the same, once windows are full."""
    ids = char_models.ids(60)
    whole, later = MODEL()(ids), MODEL()(ids[:, 20:])
    np.testing.assert_allclose(whole[:, 40:], later[:, 20:], atol=1e-5)


def test_windows_of_any_length_are_dense_attention_when_they_cover_the_text():
    ids = char_models.ids(70)
    wide = MODEL(attention_window=69, attention_dilation=1)
    wider = MODEL(attention_window=500, attention_dilation=1)
    np.testing.assert_allclose(wide(ids), wider(ids), atol=1e-5)
    np.testing.assert_allclose(wide(ids), char_models.logits(wide, ids), atol=1e-4)


def test_a_weight_that_misses_is_an_error(tmp_path):
    MODEL().save_pretrained(tmp_path)
    name = next(x for x in tensor_files.tensors_of(tmp_path) if x.endswith("position_projection"))
    tensor_files.rewrite(tmp_path, lambda tensors: tensors.pop(name))
    with pytest.raises(ValueError, match=f"lacks weights of the model: {name}"):
        etcmodel.from_pretrained(tmp_path)


def test_bytes_are_ids():
    model = MODEL(vocab_size=256)
    text = np.frombuffer("Ünï\xff".encode(), np.uint8)[np.newaxis]
    np.testing.assert_array_equal(model(text), model(text.astype(np.int64)))


def gradients_of(model, ids):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, 1:], model(ids[:, :-1]))
        loss = tf.reduce_mean(losses)
    return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, model.trainable_variables))]


def test_each_weight_learns():
    gradients = gradients_of(MODEL(), tf.constant(char_models.ids(21)))[1:]
    for variable, gradient in zip(MODEL().trainable_variables, gradients, strict=True):
        # Biases of keys change nothing: their gradients are rounding errors.
        assert np.any(gradient) or "/key/" in variable.name, variable.name


@pytest.mark.exhaustive
def test_equal_layers_are_one_loop_under_xla():
    """They are where windows are equal."""
    model = MODEL(attention_window=4, attention_dilation=((1, 2),) * 3)
    ids = tf.constant(char_models.ids(40))
    expected = gradients_of(model, ids)
    run = tf.function(functools.partial(gradients_of, model), jit_compile=True, autograph=False)
    for one, other in zip(run(ids), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
