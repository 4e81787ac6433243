"""The release's optimizers, by its names, against slow NumPy twins."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.models import lamb_optimizer, optimization
from tests.training import test_optimizer as twins

CLASSES = {
    "adamw": (optimization.AdamWeightDecayOptimizer, twins.slow_adamw),
    "lamb": (lamb_optimizer.LAMBOptimizer, twins.slow_lamb),
}
EXCLUDED = ["LayerNorm", "layer_norm", "bias", "scale$"]  # Three of them in its programs.


@pytest.mark.parametrize("name", CLASSES)
def test_weights_move_as_in_the_release_in_loops_and_graphs(name):
    kind, slow = CLASSES[name]
    optimizer = kind(0.1, 0.01, 0.9, 0.999, 1e-6, EXCLUDED)
    random = np.random.default_rng(1)
    names = ("dense/kernel", "dense/bias", "attention/layer_norm/gamma", "LayerNorm/beta", "scale")
    weights = random.normal(size=[len(names), 6])
    gradients = random.normal(size=[5, len(names), 6])
    pairs = zip(weights, names, strict=True)
    variables = [tf.Variable(w, dtype=tf.float32, name=n) for w, n in pairs]
    global_step = tf.Variable(0)

    def step(*rows):
        optimizer.apply_gradients(zip(rows, variables, strict=True), global_step=global_step)

    step(*gradients[0].astype(np.float32))
    traced = tf.function(step)
    for rows in gradients[1:].astype(np.float32):
        traced(*map(tf.constant, rows))
    assert global_step.numpy() == 0  # Theirs leaves it to `create_optimizer`, too.
    for i, variable in enumerate(variables):
        expected = slow(weights[i], gradients[:, i], decays=names[i] == names[0], corrects=False)
        np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-5, atol=2e-6)


def slow_rate(step, *, peak, steps, warmup, start, schedule, power):
    """The rate at a step: `peak` in a linear warm-up from `start`, then the decay from step 0."""
    if step - start < warmup:
        return peak * max(step - start, 0) / warmup
    if schedule == "inverse_sqrt":
        return peak * (max(step - start, warmup) / warmup) ** -0.5
    return peak * (1 - min(step, steps) / steps) ** power


@pytest.mark.parametrize(
    "optimizer, schedule, start", [("adamw", "poly_decay", 1), ("lamb", "inverse_sqrt", 0)]
)
def test_a_step_of_a_tensorflow_1_graph(optimizer, schedule, start):
    steps, warmup, power = 8, 3, 2.0
    rate = functools.partial(
        slow_rate, peak=0.1, steps=steps, warmup=warmup, start=start, schedule=schedule, power=power
    )
    weight, bias = np.array([[3.0, -4.0]]), np.array([0.5, 0.25])
    with tf.Graph().as_default():
        kernel = tf.compat.v1.get_variable("kernel", initializer=tf.constant(weight, tf.float32))
        offset = tf.compat.v1.get_variable("bias", initializer=tf.constant(bias, tf.float32))
        loss = tf.reduce_sum(3 * kernel**2) + tf.reduce_sum(offset)
        train = optimization.create_optimizer(
            loss, 0.1, steps, warmup, False, optimizer, power, start, schedule
        )
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            found = session.run([kernel, offset, tf.compat.v1.train.get_global_step()])
    m = v = 0.0
    state = np.concatenate([weight[0], bias])
    for step in range(steps):
        gradient = np.concatenate([6 * state[:2], [1, 1]])
        gradient /= max(np.linalg.norm(gradient), 1.0)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        update = m / (np.sqrt(v) + 1e-6)
        update[:2] += 0.01 * state[:2]
        if optimizer == "lamb":
            update[:2] *= np.linalg.norm(state[:2]) / np.linalg.norm(update[:2])
        state = state - rate(step) * update
    np.testing.assert_allclose(np.concatenate([found[0][0], found[1]]), state, rtol=2e-5)
    assert found[2] == steps


@pytest.mark.parametrize(
    "loss, options, message",
    [
        (tf.constant(1.0), {}, "makes a step for the `loss` of a TensorFlow 1 graph"),
        (None, {"use_tpu": True}, "`use_tpu` must be False"),
        (None, {"optimizer": "sgd"}, r"must be one of \['adamw', 'lamb'\]. Received: 'sgd'"),
        (None, {"learning_rate_schedule": "cosine"}, "learning_rate_schedule.*'cosine'"),
        (None, {"init_lr": -1.0}, "learning_rate"),
    ],
)
def test_what_cannot_be_a_step_is_refused(loss, options, message):
    arguments = {"init_lr": 0.1, "num_train_steps": 8, "num_warmup_steps": 2, "use_tpu": False}
    with pytest.raises(ValueError, match=message):
        if loss is not None:
            optimization.create_optimizer(loss, **{**arguments, **options})
        with tf.Graph().as_default():
            optimization.create_optimizer(tf.constant(1.0), **{**arguments, **options})


@pytest.mark.parametrize("name", CLASSES)
def test_keras_trains_with_them_and_makes_them_again(name):
    kind, _ = CLASSES[name]
    optimizer = kind(0.1, weight_decay_rate=0.5, exclude_from_weight_decay=["bias"])
    model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
    model.compile(optimizer, "mse", run_eagerly=True)
    inputs = np.eye(4, dtype=np.float32)
    history = model.fit(inputs, inputs[:, :1], epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]
    config = tf_keras.optimizers.serialize(optimizer)
    again = tf_keras.optimizers.deserialize(config)
    assert type(again) is kind and again.get_config() == optimizer.get_config()
    assert again.exclude_from_weight_decay == ["bias"]
