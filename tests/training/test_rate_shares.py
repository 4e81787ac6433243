"""Weights that move by a share of the learning rate: as by an optimizer of that rate."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.training import config as config_lib
from etcmodel.training import optimizer as optimizer_lib
from tests import page

CONFIG = config_lib.TrainingConfig(weight_decay_rate=0.1)
TWO_DEVICES = """
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.training import test_rate_shares as test

(one,) = test.moved(tf.distribute.OneDeviceStrategy("CPU:0"))
for copy in test.moved(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])):
    np.testing.assert_allclose(copy, one, rtol=1e-6)
assert abs(one[0] - one[1]).max() > 0.01
"""


def apply(optimizer, variables, gradients):
    for step in gradients:
        pairs = zip(step, variables, strict=True)
        optimizer.apply_gradients(pairs, experimental_aggregate_gradients=False)


def moved(strategy):
    """Two weights, one with a tenth of the rate, after steps: float [devices, 2, 3]."""
    with strategy.scope():
        variables = [tf.Variable([1.0, 2.0, 3.0], name=name) for name in ("slow", "fast")]
        optimizer = optimizer_lib.build_optimizer(CONFIG, 0.1, [(variables[0], 0.1)])

    @tf.function
    def step(gradient):
        strategy.run(lambda: apply(optimizer, variables, [[gradient, gradient]]))

    for gradient in ([1.0, -1.0, 0.5], [2.0, 0.0, -1.0]):
        step(tf.constant(gradient))
    copies = [strategy.experimental_local_results(x) for x in variables]
    assert all(len(x) == strategy.num_replicas_in_sync for x in copies)
    return np.array([[copy.numpy() for copy in x] for x in copies]).swapaxes(0, 1)


@pytest.mark.parametrize("name", ["adamw", "lamb", "bert_adam"])
@pytest.mark.parametrize("mixed_precision", ["float32", "mixed_float16"])
def test_a_share_of_the_rate_is_a_lower_rate(name, mixed_precision):
    config = dataclasses.replace(CONFIG, optimizer=name, mixed_precision=mixed_precision)
    random = np.random.default_rng(0)
    start = random.normal(size=[2, 4, 3]).astype(np.float32)
    gradients = list(map(list, tf.constant(random.normal(size=[5, 2, 4, 3]), tf.float32)))

    def after(rate, share=None):
        variables = [tf.Variable(x, name=f"weight_{i}/kernel") for i, x in enumerate(start)]
        shares = [] if share is None else [(variables[0], share), (variables[1], 1.0)]
        optimizer = optimizer_lib.build_optimizer(config, rate, shares)
        apply(optimizer, variables, gradients)
        return [x.numpy() for x in variables]

    slow, whole = after(0.4, share=0.25)
    np.testing.assert_allclose(slow, after(0.1)[0], rtol=1e-5)
    np.testing.assert_array_equal(whole, after(0.4)[1])
    assert np.abs(slow - after(0.4)[0]).max() > 0.01


@pytest.mark.parametrize("name", ["adamw", "lamb", "bert_adam"])
def test_rows_of_a_table_move_by_it_too(name):
    config = dataclasses.replace(CONFIG, optimizer=name)
    rows = tf.IndexedSlices(tf.constant([[1.0], [-2.0]]), tf.constant([0, 2]), tf.constant([4, 1]))
    found = []
    for rate, share in ((0.4, 0.25), (0.1, 1.0)):
        table = tf.Variable([[1.0], [2.0], [3.0], [4.0]], name="table")
        optimizer = optimizer_lib.build_optimizer(config, rate, [(table, share)])
        apply(optimizer, [table], [[rows], [rows]])
        found.append(table.numpy())
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_one_name_has_one_share():
    variables = [tf.Variable(0.0, name="same") for _ in range(2)]
    with pytest.raises(ValueError, match="Two variables 'same:0' have different shares"):
        optimizer_lib.build_optimizer(CONFIG, 0.1, zip(variables, (0.5, 0.25), strict=True))


@pytest.mark.slow
def test_each_devices_copy_moves_by_the_share():
    command = [sys.executable, "-c", TWO_DEVICES]
    done = subprocess.run(command, cwd=page.DOCS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
