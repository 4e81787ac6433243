"""Layer normalization in one pass over memory, with a gradient that keeps few tensors."""

import tensorflow as tf

from etcmodel.ops.compilation import compiled_elementwise
from etcmodel.ops.gradients import custom_gradient


@custom_gradient
def layer_norm(x, gamma, beta, epsilon):
    """Normalizes the last axis to mean 0 and variance 1, then scales and shifts it.

    Mean and variance are float32, whatever the dtype of the input.

    Args:
        x: float [..., size].
        gamma: float [size]. Scale.
        beta: float [size]. Shift.
        epsilon: float scalar. Added to the variance.
    Returns:
        Same shape and dtype as `x`.
    """
    output, mean, inverse_std = _normalize(x, gamma, beta, epsilon)

    def grad(gradient):
        x_gradient, scaled = _gradient(x, gamma, mean, inverse_std, gradient)
        axes = list(range(len(x.shape) - 1))
        return (
            x_gradient,
            tf.cast(tf.reduce_sum(scaled, axes), gamma.dtype),
            tf.cast(tf.reduce_sum(tf.cast(gradient, tf.float32), axes), beta.dtype),
            None,
        )

    return output, grad


@compiled_elementwise
def _normalize(x, gamma, beta, epsilon):
    values = tf.cast(x, tf.float32)
    mean = tf.reduce_mean(values, axis=-1, keepdims=True)
    centered = values - mean
    variance = tf.reduce_mean(centered * centered, axis=-1, keepdims=True)
    inverse_std = tf.math.rsqrt(variance + epsilon)
    output = centered * inverse_std * tf.cast(gamma, tf.float32) + tf.cast(beta, tf.float32)
    return tf.cast(output, x.dtype), mean, inverse_std


@compiled_elementwise
def _gradient(x, gamma, mean, inverse_std, gradient):
    """The gradient of `x`, and terms whose sum is that of `gamma`."""
    normalized = (tf.cast(x, tf.float32) - mean) * inverse_std
    gradient = tf.cast(gradient, tf.float32)
    scaled = gradient * normalized
    inner = gradient * tf.cast(gamma, tf.float32)
    along_mean = tf.reduce_mean(inner, axis=-1, keepdims=True)
    along_scale = tf.reduce_mean(inner * normalized, axis=-1, keepdims=True)
    x_gradient = inverse_std * (inner - along_mean - normalized * along_scale)
    return tf.cast(x_gradient, x.dtype), scaled


@custom_gradient
def rms_norm(x, gamma, epsilon):
    """Divides the last axis by the root of its mean square, then scales it (Zhang, Sennrich 2019).

    The mean is float32 whatever the type of the input.

    Args:
        x: float [..., size].
        gamma: float [size]. Scale.
        epsilon: float scalar. Added to the mean square.
    Returns:
        Same shape and dtype as `x`.
    """
    output, inverse_rms = _divide(x, gamma, epsilon)

    def grad(gradient):
        x_gradient, scaled = _rms_gradient(x, gamma, inverse_rms, gradient)
        axes = list(range(len(x.shape) - 1))
        return x_gradient, tf.cast(tf.reduce_sum(scaled, axes), gamma.dtype), None

    return output, grad


@compiled_elementwise
def _divide(x, gamma, epsilon):
    values = tf.cast(x, tf.float32)
    mean_square = tf.reduce_mean(values * values, axis=-1, keepdims=True)
    inverse_rms = tf.math.rsqrt(mean_square + epsilon)
    return tf.cast(values * inverse_rms * tf.cast(gamma, tf.float32), x.dtype), inverse_rms


@compiled_elementwise
def _rms_gradient(x, gamma, inverse_rms, gradient):
    """The gradient of `x`, and terms whose sum is that of `gamma`."""
    normalized = tf.cast(x, tf.float32) * inverse_rms
    gradient = tf.cast(gradient, tf.float32)
    inner = gradient * tf.cast(gamma, tf.float32)
    along = tf.reduce_mean(inner * normalized, axis=-1, keepdims=True)
    return tf.cast(inverse_rms * (inner - normalized * along), x.dtype), gradient * normalized
