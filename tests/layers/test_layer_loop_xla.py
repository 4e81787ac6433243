"""Stacks of layers that XLA compiles as one loop: the values, gradients and dropout of the layers.

A seed decides the masks of every compiled program alike. Without one each call draws others, so
that output and gradient are compared with each other, within one program.
"""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from etcmodel.layers import ResidualBlock, stack
from etcmodel.ops.dropout import seed_scope
from tests.layers import looped
from tests.layers.looped import CASE, INPUTS, UNSHARED, compare

pytestmark = pytest.mark.xla

STEP = 1e-2


@pytest.mark.parametrize(
    "num_layers, period, options",
    [(2, 0, {**UNSHARED, "use_pre_activation_order": True}), (2, 1, {}), (4, 2, {})],
)
def test_a_compiled_loop_has_the_values_gradients_and_dropout_of_its_layers(
    num_layers, period, options
):
    layers = looped.make(num_hidden_layers=num_layers, grad_checkpointing_period=period, **options)
    assert compare(layers, "auto", jit_compile=True) == 1


def test_a_compiled_loop_in_mixed_precision():
    layers = looped.make(num_hidden_layers=2, dtype="mixed_bfloat16")
    assert compare(layers, "auto", jit_compile=True, rtol=0.05, atol=0.05) == 1


def test_a_compiled_loop_on_two_devices_in_two_parts():
    done = subprocess.run(
        [sys.executable, "-m", "tests.layers.looped"], check=True, stdout=subprocess.PIPE, text=True
    )
    looped_gradients, expected = map(np.array, json.loads(done.stdout.splitlines()[-1]))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(looped_gradients, expected, rtol=1e-5, atol=1e-5)


each_mode = pytest.mark.parametrize("mode", ["auto", "never"])


@each_mode
def test_the_gradient_of_recomputed_layers_is_the_slope_under_the_masks_they_had(mode):
    layers = looped.make(num_hidden_layers=2, grad_checkpointing_period=1)
    direction = np.random.default_rng(1).normal(size=INPUTS["long_input"].shape)
    direction = (direction / np.linalg.norm(direction)).astype(np.float32)

    @tf.function(jit_compile=True)
    def run(long_input, seed):
        with stack.loop_scope(mode), tf.GradientTape() as tape, seed_scope(seed):
            tape.watch(long_input)
            outputs = CASE.call(layers, {**INPUTS, "long_input": long_input}, training=True)
            target = tf.add_n([tf.reduce_sum(tf.sin(x)) for x in outputs])
        return target, tf.reduce_sum(tape.gradient(target, long_input) * direction)

    x = tf.constant(INPUTS["long_input"])
    seed, other_seed = tf.constant([3, 4]), tf.constant([3, 5])
    ahead, behind = (run(x + sign * STEP * direction, seed)[0] for sign in (1, -1))
    slope = (ahead - behind) / (2 * STEP)
    np.testing.assert_allclose(run(x, seed)[1], slope, rtol=0.01, atol=0.01)
    assert abs(run(x, other_seed)[1] - slope) > 0.1


def linear_blocks(number):
    """Layers without biases and normalization: their output is linear in what they are given."""
    blocks = []
    for seed in range(number):
        initializer = tf_keras.initializers.RandomNormal(stddev=0.3, seed=seed)
        inner = tf_keras.layers.Dense(8, use_bias=False, kernel_initializer=initializer)
        identity = tf_keras.layers.Activation("linear")
        blocks.append(ResidualBlock(inner, identity, dropout_probability=0.5, name=f"block_{seed}"))
        blocks[-1].build([None, None, 8])
    return blocks


@each_mode
@pytest.mark.parametrize("seed", [None, [1, 2]], ids=["drawn", "given"])
def test_recomputation_draws_the_masks_of_the_forward_pass(mode, seed):
    """The gradient of a linear function, times its argument, is its value, for equal masks."""
    groups = [[(stack.Step(block),)] for block in linear_blocks(3)]

    def run_group(group, hidden, weights=None):
        return stack.run_recomputed(group, hidden, {}, True, weights)

    @tf.function(jit_compile=True)
    def run(x):
        scope = contextlib.nullcontext() if seed is None else seed_scope(tf.constant(seed))
        with stack.loop_scope(mode), tf.GradientTape() as tape, scope:
            tape.watch(x)
            hidden, is_loop = [x], stack.should_loop(groups, [x], "float32")
            if is_loop:
                hidden = stack.run_loop(groups, hidden, run_group)
            for group in [] if is_loop else groups:
                hidden = run_group(group, hidden)
            value = tf.reduce_sum(hidden[0], axis=-1)
        assert is_loop == (mode == "auto")
        return value, tf.reduce_sum(tape.gradient(value, x) * x, axis=-1)

    x = tf.constant(np.random.default_rng(0).normal(size=[2, 30, 8]), tf.float32)
    (value, product), (again, _) = run(x), run(x)
    np.testing.assert_allclose(product, value, rtol=1e-5, atol=1e-5)
    assert np.array_equal(value, again) == (seed is not None)
