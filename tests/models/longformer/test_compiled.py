"""`LongformerModel` in graphs of every kind: compiled by XLA, functional, exported."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.models.longformer import small
from tests.models.longformer.test_modeling import MODEL, hidden_of

pytestmark = pytest.mark.slow


def test_xla_compiles_with_a_known_number_of_global_tokens():
    model = MODEL(max_global_tokens=3)
    global_mask = np.array([[1, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]])
    mask = np.array([[1] * 7, [1] * 5 + [0, 0]])
    compiled = tf.function(lambda *args: model(*args)[0], jit_compile=True, autograph=False)
    arguments = (small.ids(7, 2), mask, global_mask)
    np.testing.assert_allclose(
        compiled(*map(tf.constant, arguments)), hidden_of(*arguments), atol=1e-5
    )
    # It cannot raise there: the fourth is local.
    many = np.array([[1, 0, 1, 0, 1, 0, 1], [0] * 7])
    first_three = np.where(np.arange(7) < 6, many, 0)
    np.testing.assert_allclose(
        compiled(*map(tf.constant, (arguments[0], mask, many))),
        hidden_of(arguments[0], mask, first_three),
        atol=1e-5,
    )


def test_a_functional_model_takes_any_length():
    ids, mask = (tf_keras.Input([None], dtype=tf.int32) for _ in range(2))
    outputs = MODEL()(ids, attention_mask=mask, global_attention_mask=[0])
    model = tf_keras.Model([ids, mask], outputs)
    for length in (3, 11):
        given = small.ids(length), np.ones([1, length], int)
        np.testing.assert_allclose(model(given)[0], hidden_of(*given, [0]), atol=1e-6)


def test_an_exported_model_takes_any_length(tmp_path):
    module, spec = tf.Module(), tf.TensorSpec([None, None], tf.int32)
    module.model = MODEL()
    module.encode = tf.function(
        lambda ids, mask: module.model(ids, mask + 1)[0], [spec, spec], autograph=False
    )
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    for length in (3, 11):
        ids, mask = (tf.constant(x, tf.int32) for x in (small.ids(length), np.eye(1, length)))
        np.testing.assert_allclose(served.encode(ids, mask), hidden_of(ids, None, mask), atol=1e-6)
