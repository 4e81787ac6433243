"""Optimizers and clipping against slow NumPy twins."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.training import config as config_lib
from etcmodel.training import optimizer as optimizer_lib

CONFIG = config_lib.TrainingConfig(learning_rate=0.1, weight_decay_rate=0.01)
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-6
NAMES = (
    "dense/kernel",
    "dense/bias",
    "attention/layer_norm/gamma",
    "LayerNorm/beta",
    "embedding_norm/gamma",
)


def slow_adamw(weight, gradients, *, decays, corrects=True, beta_2=BETA_2):
    """Adam with the bias correction moved into the step size, and decoupled decay."""
    m = v = np.zeros_like(weight)
    for t, gradient in enumerate(gradients, start=1):
        m = BETA_1 * m + (1 - BETA_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        step_size = 0.1 * (np.sqrt(1 - beta_2**t) / (1 - BETA_1**t) if corrects else 1.0)
        decay = 0.1 * 0.01 * weight if decays else 0.0
        weight = weight - decay - step_size * m / (np.sqrt(v) + EPSILON)
    return weight


def slow_lamb(weight, gradients, *, decays, corrects=True, beta_2=BETA_2):
    """LAMB, algorithm 2 of arXiv:1904.00962; weights without decay are not adapted by layer."""
    m = v = np.zeros_like(weight)
    for t, gradient in enumerate(gradients, start=1):
        m = BETA_1 * m + (1 - BETA_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        shares = (1 - BETA_1**t, 1 - beta_2**t) if corrects else (1.0, 1.0)
        update = (m / shares[0]) / (np.sqrt(v / shares[1]) + EPSILON)
        ratio = 1.0
        if decays:
            update = update + 0.01 * weight
            ratio = np.linalg.norm(weight) / np.linalg.norm(update)
        weight = weight - 0.1 * ratio * update
    return weight


def slow_bert_adam(weight, gradients, *, decays, beta_2=BETA_2):
    """Adam with the moments as they are; the weight's decay is added to the step."""
    m = v = np.zeros_like(weight)
    for gradient in gradients:
        m = BETA_1 * m + (1 - BETA_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        decay = 0.01 * weight if decays else 0.0
        weight = weight - 0.1 * (m / (np.sqrt(v) + EPSILON) + decay)
    return weight


SLOW = {"adamw": slow_adamw, "lamb": slow_lamb, "bert_adam": slow_bert_adam}


@pytest.mark.parametrize(
    ("options", "slow"),
    [
        ({"optimizer": "adamw"}, slow_adamw),
        ({"optimizer": "lamb"}, slow_lamb),
        (
            {"optimizer": "adamw", "adam_bias_correction": False},
            functools.partial(slow_adamw, corrects=False),
        ),
        (
            {"optimizer": "lamb", "adam_bias_correction": False},
            functools.partial(slow_lamb, corrects=False),
        ),
        ({"optimizer": "bert_adam"}, slow_bert_adam),
        *(
            ({"optimizer": name, "adam_beta_2": 0.98}, functools.partial(slow, beta_2=0.98))
            for name, slow in SLOW.items()
        ),
    ],
)
def test_optimizer_equals_its_slow_twin_and_spares_biases_and_layer_norms(options, slow):
    random = np.random.default_rng(1)
    weights = random.normal(size=[len(NAMES), 6])
    gradients = random.normal(size=[5, len(NAMES), 6])
    variables = [
        tf.Variable(w, dtype=tf.float32, name=n) for w, n in zip(weights, NAMES, strict=True)
    ]
    optimizer = optimizer_lib.build_optimizer(dataclasses.replace(CONFIG, **options), 0.1)
    for step in gradients.astype(np.float32):
        pairs = zip(list(step), variables, strict=True)
        optimizer.apply_gradients(pairs, experimental_aggregate_gradients=False)
    for i, variable in enumerate(variables):
        expected = slow(weights[i], gradients[:, i], decays=NAMES[i] == "dense/kernel")
        np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["adamw", "bert_adam"])
def test_mixed_float16_scales_the_loss(name):
    config = dataclasses.replace(CONFIG, mixed_precision="mixed_float16", optimizer=name)
    optimizer = optimizer_lib.build_optimizer(config, 0.1)
    assert isinstance(optimizer, tf_keras.mixed_precision.LossScaleOptimizer)


def test_gradients_are_clipped_to_a_common_norm():
    clipped, norm = optimizer_lib.clip_gradients([tf.constant([3.0]), tf.constant([0.0, 4.0])], 1.0)
    assert float(norm) == 5.0
    np.testing.assert_allclose(np.concatenate(clipped), [0.6, 0.0, 0.8], rtol=1e-6)
    clipped, _ = optimizer_lib.clip_gradients([tf.constant([3.0, 4.0])], 0.25)
    np.testing.assert_allclose(clipped[0], [0.15, 0.2], rtol=1e-6)


def test_small_gradients_are_left_alone():
    clipped, _ = optimizer_lib.clip_gradients([tf.constant([0.3, 0.4])], 1.0)
    np.testing.assert_allclose(clipped[0], [0.3, 0.4], rtol=1e-6)


def test_gradients_are_clipped_each_by_its_own_norm():
    gradients = [tf.constant([3.0, 4.0]), tf.constant([[0.3], [0.4]]), tf.constant([0.0])]
    clipped, norm = optimizer_lib.clip_gradients(gradients, 1.0, per_variable=True)
    np.testing.assert_allclose(norm, np.sqrt(25.25), rtol=1e-6)
    for found, wanted in zip(clipped, ([0.6, 0.8], [[0.3], [0.4]], [0.0]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("per_variable", [False, True])
@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e30])
def test_gradients_that_are_not_finite_all_become_nan(per_variable, bad):
    gradients = [tf.constant([bad]), tf.constant([1.0])]
    clipped, norm = optimizer_lib.clip_gradients(gradients, 1.0, per_variable=per_variable)
    assert np.isnan(np.concatenate(clipped)).all() and not np.isfinite(norm)


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "bert_adam"},
        {"optimizer": "adamw", "adam_bias_correction": False},
        {"optimizer": "lamb", "adam_bias_correction": False},
    ],
)
def test_rows_of_a_table_move_as_a_dense_gradient_moves_them(options):
    """Rows that were not looked up, too: their moments fall."""
    config = dataclasses.replace(CONFIG, **options)
    tables = []
    for as_rows in (True, False):
        table = tf.Variable(np.arange(8.0, dtype=np.float32).reshape(4, 2), name="table")
        optimizer = optimizer_lib.build_optimizer(config, 0.1)
        for rows in ([1, 1, 3], [0, 3, 3]):
            gradient = tf.IndexedSlices(tf.ones([3, 2]), tf.constant(rows), tf.constant([4, 2]))
            gradient = gradient if as_rows else tf.convert_to_tensor(gradient)
            optimizer.apply_gradients([(gradient, table)])
        tables.append(table.numpy())
    np.testing.assert_allclose(*tables, rtol=1e-6)


def test_the_first_steps_of_bert_adam_are_longer_than_those_of_adamw():
    """Of a gradient that stays the same, at most 6.6 times, at step 12: see docs/training.md."""
    gradient, moves = tf.constant([1.0]), {}
    for name in ("bert_adam", "adamw"):
        config = dataclasses.replace(CONFIG, optimizer=name, weight_decay_rate=0.0)
        optimizer, weight = optimizer_lib.build_optimizer(config, 0.01), tf.Variable([0.0])
        places = [0.0]
        for _ in range(30):
            optimizer.apply_gradients([(gradient, weight)], experimental_aggregate_gradients=False)
            places.append(weight.numpy()[0])
        moves[name] = np.diff(places)
    ratios = moves["bert_adam"] / moves["adamw"]
    np.testing.assert_allclose(ratios[[0, 11, 29]], [3.16, 6.57, 5.57], atol=0.01)
    assert ratios.argmax() == 11


def test_adamw_without_correction_is_the_release_s():
    """Weight after 20 of 100 steps of a gradient that stays the same: a known value of each way."""
    gradient, places = tf.constant([1.0]), {}
    for corrects in (True, False):
        config = dataclasses.replace(
            CONFIG, adam_bias_correction=corrects, weight_decay_rate=0.0, learning_rate=1e-3
        )
        rate = optimizer_lib.build_learning_rate(config, 100)
        optimizer, weight = optimizer_lib.build_optimizer(config, rate), tf.Variable([0.0])
        for _ in range(20):
            optimizer.apply_gradients([(gradient, weight)], experimental_aggregate_gradients=False)
        places[corrects] = -weight.numpy()[0]
    m = v = place = 0.0
    for step in range(20):
        m, v = 0.9 * m + 0.1, 0.999 * v + 0.001
        place += float(rate(step)) * m / (np.sqrt(v) + 1e-6)
    np.testing.assert_allclose(places[False], place, rtol=1e-4)
    assert places[False] > 4 * places[True]


def test_bert_adam_corrects_no_bias():
    with pytest.raises(ValueError, match="`adam_bias_correction` is for adamw and lamb"):
        dataclasses.replace(CONFIG, optimizer="bert_adam", adam_bias_correction=True)


def test_bert_adam_is_made_again_of_its_config():
    optimizer = optimizer_lib.BertAdam(
        0.1, weight_decay_rate=0.5, exclude_from_weight_decay=["bias"]
    )
    config = optimizer.get_config()
    again = optimizer_lib.BertAdam.from_config(config)
    assert again.get_config() == config and config["weight_decay_rate"] == 0.5
