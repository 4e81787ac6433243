"""`CharLmModel` against its slow twin, and what holds whatever its weights are."""

import functools

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import etcmodel
from etcmodel.models.longformer_char_lm import CharLmModel
from tests.checkpoints import tensor_files
from tests.models.longformer_char_lm import char_models

MODEL = functools.cache(char_models.model)


@pytest.mark.parametrize("length", [1, 9, 30])
def test_logits_are_those_of_the_slow_twin(length):
    ids = char_models.ids(length)
    found = MODEL()(ids)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, char_models.logits(MODEL(), ids), atol=1e-4)


@pytest.mark.exhaustive
@hypothesis.settings(max_examples=10)
@hypothesis.given(st.integers(1, 20), st.data())
def test_no_later_character_matters(length, data):
    first_changed = data.draw(st.integers(0, length - 1))
    ids = char_models.ids(length)
    others = np.where(np.arange(length) < first_changed, ids, char_models.ids(length, seed=1))
    one, other = (MODEL()(x)[:, :first_changed] for x in (ids, others))
    np.testing.assert_array_equal(one, other)


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


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_says_nearly_the_same(policy):
    model, ids = MODEL(policy), char_models.ids(20)
    with tf.GradientTape() as tape:
        logits = model(ids)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(ids, logits))
    assert logits.dtype == tf.float32
    np.testing.assert_allclose(logits, MODEL()(ids), atol=0.15)
    for gradient in tape.gradient(loss, model.trainable_variables):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_a_model_is_saved_and_loaded_again(tmp_path):
    ids = char_models.ids(12)
    MODEL().save_pretrained(tmp_path)
    loaded = etcmodel.from_pretrained(str(tmp_path))
    assert isinstance(loaded, CharLmModel) and loaded.config == MODEL().config
    np.testing.assert_array_equal(loaded(ids), MODEL()(ids))
    wider = etcmodel.from_pretrained(str(tmp_path), attention_window=(4, 6, 10))
    expected = MODEL(attention_window=(4, 6, 10))(ids)
    np.testing.assert_allclose(wider(ids), expected, atol=1e-6)


def test_a_weight_that_misses_is_an_error(tmp_path):
    MODEL().save_pretrained(tmp_path)
    name = next(x for x in tensor_files.tensors_of(tmp_path) if x.endswith("position_projection"))
    tensor_files.rewrite(tmp_path, lambda tensors: tensors.pop(name))
    with pytest.raises(ValueError, match=f"lacks weights of the model: {name}"):
        etcmodel.from_pretrained(tmp_path)


def test_a_model_of_its_config_is_the_same():
    twin = CharLmModel.from_config(MODEL().get_config())
    ids = char_models.ids(5)
    twin(ids)
    twin.set_weights(MODEL().get_weights())
    np.testing.assert_array_equal(twin(ids), MODEL()(ids))
    assert [x.name for x in twin.weights] == [x.name for x in MODEL().weights]


def test_bytes_are_ids():
    model = MODEL(vocab_size=256)
    text = np.frombuffer("Ünï\xff".encode(), np.uint8)[np.newaxis]
    np.testing.assert_array_equal(model(text), model(text.astype(np.int64)))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([1, 2]), r"`input_ids` must have shape \[batch, length\]"),
        (
            np.array([[1, 11]]),
            "at least 0 and below `vocab_size`, 11. Received .* 1 to 11, 11 in row 0",
        ),
    ],
)
def test_what_are_no_ids_is_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        MODEL()(ids)


def test_dropout_acts_in_training_only():
    model = MODEL(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3)
    ids = char_models.ids(20)
    np.testing.assert_array_equal(model(ids), MODEL()(ids))
    assert not np.allclose(model(ids, training=True), model(ids))
