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


@pytest.mark.quick_cases(1)
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


def test_parts_count_by_what_their_losses_are_means_over():
    labels = tf.constant([0] * 5 + [1, 2, 3, 0, 4, 0, 0])
    weights = variables()

    def losses(features):
        counts = tf.cast(features["labels"] > 0, tf.float32)
        error = (features["x"] @ weights[0])[:, 0] + tf.gather(weights[1][:, 0], features["ids"])
        mean = tf.math.divide_no_nan(tf.reduce_sum(counts * error**2), tf.reduce_sum(counts))
        return {"loss": mean, "twice": 2.0 * mean}

    def gradients(num_parts, shares=None):
        return gradients_lib.mean_gradients(
            losses, weights, features, num_parts=num_parts, seed=SEED, shares=shares
        )

    features = {**FEATURES, "labels": labels}
    whole_gradients, whole_losses = gradients(1)
    sizes = [
        tf.math.count_nonzero(gradients_lib.part_of(features, part, 4)["labels"], dtype=tf.float32)
        for part in range(4)
    ]
    assert [float(x) for x in sizes] == [0.0, 1.0, 2.0, 1.0]
    shares = gradients_lib.shares_of_parts(tf.stack(sizes), tf.distribute.get_replica_context())
    part_gradients, part_losses = gradients(4, shares)
    for part, whole in zip(part_gradients[:2], whole_gradients[:2], strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-5)
    for name, value in whole_losses.items():
        np.testing.assert_allclose(part_losses[name], value, rtol=1e-5)
    unweighted, _ = gradients(4)
    assert np.abs(unweighted[0] - whole_gradients[0]).max() > 0.1
    nothing = gradients_lib.shares_of_parts(tf.zeros([4]), tf.distribute.get_replica_context())
    np.testing.assert_array_equal(nothing, np.zeros(4))


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
