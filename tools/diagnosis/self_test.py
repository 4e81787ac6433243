"""Self-test: checks the values of a small encoder, and measures its speed."""

import math
import statistics
import time

from ..benchmarks import costs, worker
from .findings import BROKEN, OK, Finding

__all__ = ["EXPECTED", "encoder_finding", "findings", "matrix_finding", "small_encoder_values"]

_MATRIX_SIZE = 2048
_RADIUS = 84  # Of ETC's base model.
_SIZES = {"length": 2048, "global_length": 128, "layers": 2, "hidden": 256}
_ROUNDS = 5

# Expected `small_encoder_values`.
EXPECTED = {
    "long": -0.136239,
    "global": 0.123470,
    "loss": 1.346492,
    "loss after a step": 1.326864,
}


def findings():
    """Yields a `Finding` for matrix products, for the encoder's values, and for its speed."""
    finding, flops_per_second = matrix_finding()
    yield finding
    yield encoder_finding(small_encoder_values())
    yield _speed_finding(flops_per_second)


def matrix_finding():
    """Checks matrix products.

    Returns:
        (`Finding`, floating-point operations per second).
    """
    import numpy as np
    import tensorflow as tf

    rows = np.arange(64 * 64).reshape(64, 64) % 7 - 3.0  # Small integers: the product is exact.
    product = tf.matmul(tf.constant(rows, tf.float32), tf.constant(rows.T, tf.float32)).numpy()
    matrix = tf.random.stateless_normal([_MATRIX_SIZE, _MATRIX_SIZE], seed=[0, 0])
    multiply = tf.function(lambda: tf.matmul(matrix, matrix))
    speed = 2 * _MATRIX_SIZE**3 / _seconds(lambda: multiply()[0, 0].numpy())
    if not np.array_equal(product, rows @ rows.T):
        return Finding(BROKEN, "matrix product", "TensorFlow's differs from NumPy's."), speed
    told = f"right; {speed / 1e9:.0f} GFLOP/s in float32"
    return Finding(OK, "matrix product", told), speed


def encoder_finding(values, expected=EXPECTED):
    """Checks the values of a small encoder.

    Args:
        values: dict as from `small_encoder_values`.
        expected: likewise.
    """
    for name, value in expected.items():
        if not math.isclose(values[name], value, rel_tol=1e-3):
            told = f"{name} is {values[name]:.6g}, but must be {value:.6g}."
            return Finding(BROKEN, "ETC's values", told)
    return Finding(OK, "ETC's values", "a forward pass and a step of training are right")


def small_encoder_values():
    """The values of an encoder with fixed weights.

    Returns:
        dict: an element of the long and of the global output, the loss, and the loss after a step
        of gradient descent.
    """
    import numpy as np
    import tensorflow as tf

    from etcmodel.models import input_utils, modeling

    model = modeling.EtcModel(
        modeling.EtcConfig(
            vocab_size=32,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            local_radius=4,
            relative_pos_max_distance=3,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )
    model.build(None)
    random = np.random.RandomState(0)  # Its numbers are the same in all versions of NumPy.
    for variable in model.trainable_variables:
        variable.assign(random.uniform(-0.5, 0.5, variable.shape))
    structure = input_utils.make_structure_from_example_ids(
        tf.ones([1, 24], tf.int32),
        tf.ones([1, 4], tf.int32),
        tf.range(24)[tf.newaxis] // 6,
        model.config.relative_pos_max_distance,
    )

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            long_output, global_output = model(
                tf.range(24)[tf.newaxis], tf.ones([1, 4], tf.int32), structure=structure
            )
            loss = tf.reduce_mean(tf.square(long_output - 1.0))
            loss += tf.reduce_mean(tf.square(global_output))
        for variable, gradient in zip(
            model.trainable_variables,
            tape.gradient(loss, model.trainable_variables, unconnected_gradients="zero"),
            strict=True,
        ):
            variable.assign_sub(0.01 * tf.convert_to_tensor(gradient))
        return long_output[0, 5, 3], global_output[0, 1, 2], loss

    first, second = step(), step()
    found = {"long": first[0], "global": first[1], "loss": first[2], "loss after a step": second[2]}
    return {name: float(value) for name, value in found.items()}


def _speed_finding(flops_per_second):
    phases = worker.graph_phases(worker.etc_functions(**_SIZES))
    seconds = {name: _seconds(run) for name, run in phases.items()}
    share = _flops() / seconds["forward"] / flops_per_second
    told = (
        f"forward pass {seconds['forward']:.3f} s ({share:.2f} of the speed of matrix products), "
        f"training step {seconds['train']:.3f} s"
    )
    size = f"ETC of {_SIZES['layers']} layers of {_SIZES['hidden']} on {_SIZES['length']} tokens"
    return Finding(OK, size, told)


def _flops():
    sizes = {**_SIZES, "intermediate": 4 * _SIZES["hidden"]}
    return costs.forward_flops(**sizes, radius=_RADIUS)


def _seconds(run):
    """Median of several runs, after a tracing run."""
    times = []
    for _ in range(_ROUNDS + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
