"""A batch in parts gives the gradients of the whole."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.ops import dropout as dropout_ops
from etcmodel.training import trainer as gradients_lib

RANDOM = np.random.default_rng(2)
FEATURES = {
    "x": tf.constant(RANDOM.normal(size=[12, 3]), tf.float32),
    "ids": tf.constant(RANDOM.integers(4, size=[12])),
}
SEED = tf.constant([7, 0])


def variables():
    return [
        tf.Variable([[1.0], [2.0], [-1.0]]),
        tf.Variable(tf.reshape(tf.range(4.0), [4, 1])),
        tf.Variable(1.0),  # Not used by the loss.
    ]


def loss_fn(weights, rate=0.0):
    def losses(features):
        x = dropout_ops.dropout(features["x"], rate)
        error = x @ weights[0] + tf.gather(weights[1], features["ids"])
        return {"loss": tf.reduce_mean(error**2), "size": tf.reduce_mean(tf.abs(error))}

    return losses


def mean_gradients(num_parts, rate=0.0, features=FEATURES):
    weights = variables()

    @tf.function
    def compute(features):
        return gradients_lib.mean_gradients(
            loss_fn(weights, rate), weights, features, num_parts=num_parts, seed=SEED
        )

    return compute(features)


@pytest.mark.parametrize("num_parts", [2, 3, 12])
def test_parts_equal_the_whole(num_parts):
    gradients, losses = mean_gradients(num_parts)
    whole_gradients, whole_losses = mean_gradients(1)
    assert gradients[2] is None and whole_gradients[2] is None
    for part, whole in zip(gradients[:2], whole_gradients[:2], strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-5)
    assert losses.keys() == whole_losses.keys()
    for name in losses:
        np.testing.assert_allclose(losses[name], whole_losses[name], rtol=1e-5)


def test_repeated_rows_of_a_lookup_are_summed():
    gradients, _ = mean_gradients(1)
    assert gradients[1].shape == [4, 1]


def test_parts_draw_different_dropout_masks():
    one_row = {"x": tf.ones([2, 40]), "ids": tf.zeros([2], tf.int64)}
    weights = tf.Variable(tf.ones([40, 1]))

    @tf.function
    def compute():
        def losses(features):
            return {"loss": tf.reduce_mean(dropout_ops.dropout(features["x"], 0.5) @ weights)}

        return gradients_lib.mean_gradients(losses, [weights], one_row, num_parts=2, seed=SEED)

    # With one mask for both parts every entry would be 0 or 2.
    assert 1.0 in compute()[0][0].numpy()


def test_same_seed_same_dropout():
    first, second = mean_gradients(3, rate=0.5), mean_gradients(3, rate=0.5)
    np.testing.assert_array_equal(first[0][0], second[0][0])
