"""`ModernBertModel` in graphs of every kind: compiled by XLA, functional, exported, trained."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from tests.models.modernbert import small
from tests.models.modernbert.test_modeling import MASKS, MODEL, hidden_of

pytestmark = pytest.mark.slow


def test_xla_computes_whole_batches():
    mask = np.array(MASKS["right"])
    wanted = hidden_of(small.ids(9, 2), mask)
    for skip_padding in (False, True):
        model = MODEL(skip_padding=skip_padding)
        compiled = tf.function(model, jit_compile=True, autograph=False)
        found = compiled(tf.constant(small.ids(9, 2)), attention_mask=tf.constant(mask))
        wanted = np.where(mask[:, :, np.newaxis], wanted, 0) if skip_padding else wanted
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_functional_model_takes_any_length():
    ids, mask = (tf_keras.Input([None], dtype=tf.int32) for _ in range(2))
    model = tf_keras.Model([ids, mask], MODEL()(ids, attention_mask=mask))
    for length in (3, 11):
        given = small.ids(length), np.ones([1, length], int)
        np.testing.assert_allclose(model(given), hidden_of(*given), atol=1e-5)


@pytest.mark.parametrize("skip_padding", [False, True])
@pytest.mark.slow_cases(1)
def test_an_exported_model_takes_any_length(skip_padding, tmp_path):
    module, spec = tf.Module(), tf.TensorSpec([None, None], tf.int32)
    module.model = MODEL(skip_padding=skip_padding)
    module.encode = tf.function(
        lambda ids, mask: module.model(ids, mask), [spec, spec], autograph=False
    )
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    for length in (3, 11):
        mask = np.array([[1] * length, [1] * 2 + [0] * (length - 2)], np.int32)
        ids = small.ids(length, 2).astype(np.int32)
        found = served.encode(tf.constant(ids), tf.constant(mask)).numpy()
        wanted = hidden_of(ids, mask)
        np.testing.assert_allclose(found[mask > 0], wanted[mask > 0], atol=1e-5)


@pytest.mark.parametrize("skip_padding", [False, True])
@pytest.mark.slow_cases(1)
def test_a_classifier_learns(skip_padding):
    model = etcmodel.ModernBertForSequenceClassification(
        small.config(skip_padding=skip_padding, classifier_pooling="mean", attention_dropout=0.1),
        labels=["low", "high"],
    )
    model.compile(tf_keras.optimizers.Adam(0.01))
    ids = np.array([[3, 4, 5, 0], [30, 31, 0, 0], [6, 3, 0, 0], [35, 33, 36, 37]])
    features = {"input_ids": ids, "attention_mask": (ids > 0).astype(int)}
    history = model.fit(features, np.array([0, 1, 0, 1]), epochs=30, verbose=0).history["loss"]
    assert history[-1] < 0.3 * history[0]
