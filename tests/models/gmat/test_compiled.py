"""`GmatModel` and PEGASUS-X in graphs of every kind: compiled by XLA, functional, exported."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.models.gmat import small
from tests.models.pegasus_x import models

pytestmark = pytest.mark.slow
KINDS = ({}, small.OWN, small.COMPRESSED, {"num_memory_tokens": 0})
MASK = np.array([[1] * 11, [1] * 7 + [0] * 4], np.int32)


@pytest.mark.slow_cases(2)
@pytest.mark.parametrize("changes", KINDS)
def test_xla_gives_the_same_states_and_gradients(changes):
    model, ids = small.model(**changes), tf.constant(small.ids(2, 11))

    def step(ids, mask):
        with tf.GradientTape() as tape:
            hidden = model(ids, mask)[0]
            rows = tf.cast(mask, tf.float32)[..., tf.newaxis]
            loss = tf.reduce_sum(rows * tf.sin(hidden))
        weights = model.embeddings.word_embeddings.embedding_table
        return hidden, tf.convert_to_tensor(tape.gradient(loss, [weights])[0])

    compiled = tf.function(step, jit_compile=True, autograph=False)
    hidden, gradient = compiled(ids, tf.constant(MASK))
    # With compression words go through the memory alone.
    wanted, wanted_gradient = step(ids, tf.constant(MASK))
    np.testing.assert_allclose(hidden.numpy()[MASK > 0], wanted.numpy()[MASK > 0], atol=1e-5)
    np.testing.assert_allclose(gradient, wanted_gradient, atol=2e-4)


def test_xla_compiles_pegasus_x():
    model = models.model()
    arguments = (tf.constant(models.ids(2, 11)), tf.constant(MASK), tf.constant(models.ids(2, 4)))
    compiled = tf.function(lambda *x: model(*x)["logits"], jit_compile=True, autograph=False)
    np.testing.assert_allclose(compiled(*arguments), model(*arguments)["logits"], atol=1e-5)


def test_a_functional_model_takes_any_length():
    ids, mask = (tf_keras.Input([None], dtype=tf.int32) for _ in range(2))
    gmat = small.model()
    model = tf_keras.Model([ids, mask], gmat(ids, attention_mask=mask)[0])
    for length in (3, 11):
        given = small.ids(1, length), np.ones([1, length], np.int32)
        np.testing.assert_allclose(model(given), gmat(*given)[0], atol=1e-6)


@pytest.mark.slow_cases(1)
@pytest.mark.parametrize("changes", KINDS)
def test_an_exported_gmat_takes_any_length(changes, tmp_path):
    module, spec = tf.Module(), tf.TensorSpec([None, None], tf.int32)
    module.model = small.model(**changes)
    module.encode = tf.function(
        lambda ids, mask: module.model(ids, mask)[0], [spec, spec], autograph=False
    )
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    for length in (3, 11):
        ids, mask = tf.constant(small.ids(2, length)), tf.ones([2, length], tf.int32)
        wanted = module.model(ids, mask)[0]
        np.testing.assert_allclose(served.encode(ids, mask), wanted, atol=1e-5)


@pytest.mark.exhaustive
def test_an_exported_pegasus_x_generates(tmp_path):
    module, spec = tf.Module(), tf.TensorSpec([None, None], tf.int32)
    module.model = models.model()
    module.write = tf.function(
        lambda ids, mask: module.model.generate(ids, mask, max_length=7, num_beams=2),
        [spec, spec],
        autograph=False,
    )
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    for length in (3, 11):
        ids, mask = tf.constant(models.ids(2, length)), tf.ones([2, length], tf.int32)
        found = served.write(ids, mask)
        wanted = module.model.generate(ids, mask, max_length=7, num_beams=2)
        np.testing.assert_array_equal(found["sequences"], wanted["sequences"])
        np.testing.assert_allclose(found["sequences_scores"], wanted["sequences_scores"], atol=1e-5)
