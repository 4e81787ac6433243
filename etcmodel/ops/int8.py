"""Products with weights of 8 bits, for inference on a CPU.

Each row of the input is rounded to 8 bits before the product ("dynamic quantization"), by its own
largest value, so that no row depends on others. oneDNN, which TensorFlow has, multiplies; there are
no gradients.
"""

from typing import NamedTuple

import tensorflow as tf

# Of the 127 that a weight could have: processors without instructions for 8 bits add two products
# of inputs (up to 255) and weights in 16 bits, which more would exceed in silence.
LEVELS = 63
_INPUT_LEVELS = 127
_ZERO = 128  # What stands for 0 in inputs without a sign.
_LEAST = 1e-30  # Of a row of zeros.
_NAME = "needs_oneDNN__TF_ENABLE_ONEDNN_OPTS_1"  # TensorFlow names what lacks it, and not why.


class Int8Kernel(NamedTuple):
    """Weights [size, units] in 8 bits.

    Attributes:
        values: int8 [size, units], from -`LEVELS` to `LEVELS`.
        scales: float32 [units]. A weight is its value times this.
        shifts: float32 [units]. What the product has to add, since inputs have no sign.
    """

    values: tf.Tensor | tf.Variable
    scales: tf.Tensor | tf.Variable
    shifts: tf.Tensor | tf.Variable


def quantized(kernel):
    """Rounds weights to 8 bits, the largest of each unit to `LEVELS`.

    Args:
        kernel: float32 [size, units].
    Returns:
        `Int8Kernel` of tensors.
    """
    scales = tf.maximum(tf.reduce_max(tf.abs(kernel), axis=0), _LEAST) / LEVELS
    values = tf.round(kernel / scales)
    shifts = -_ZERO * tf.reduce_sum(values, axis=0)
    return Int8Kernel(tf.cast(values, tf.int8), scales, shifts)


def product(x, kernel, bias=None):
    """Computes `x @ kernel + bias` with x rounded to 8 bits, the largest of each row to 127.

    Args:
        x: float32 [rows, size].
        kernel: `Int8Kernel`.
        bias: float32 [units] or None.
    Returns:
        float32 [rows, units].
    Raises:
        tf.errors.InternalError: when its graph is run, if TensorFlow computes without oneDNN.
    """
    num_rows, units = tf.shape(x)[0], kernel.values.shape[1]
    largest = tf.maximum(tf.reduce_max(x, -1, True), -tf.reduce_min(x, -1, True))
    scales = tf.maximum(largest, _LEAST) / _INPUT_LEVELS
    # Casting cuts off what is behind the point.
    rows = tf.cast(x * (1 / scales) + (_ZERO + 0.5), tf.uint8)
    sums = tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
        a=tf.bitcast(rows, tf.quint8),
        b=tf.bitcast(kernel.values, tf.qint8),
        bias=kernel.shifts,
        # Sums of the whole numbers themselves.
        min_a=0.0,
        max_a=255.0,
        min_b=-127.0,
        max_b=127.0,
        min_freezed_output=-1.0,  # Of outputs of 8 bits alone.
        max_freezed_output=1.0,
        Toutput=tf.float32,
        input_quant_mode="SCALED",
        name=_NAME,
    )
    # One pass, where a product and a sum would be two.
    output = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(sums * scales, [num_rows, 1, 1, units]),
        scale=kernel.scales,
        offset=tf.zeros([units]) if bias is None else bias,
        mean=tf.zeros([units]),
        variance=tf.ones([units]),
        epsilon=0.0,
        is_training=False,
    ).y
    return tf.reshape(output, [num_rows, units])
