"""A dropout layer for recomputed activations."""

import tensorflow as tf
import tf_keras

from etcmodel.layers import base, recompute_grad
from etcmodel.ops import dropout as dropout_ops

__all__ = ["RecomputingDropout", "smart_cond"]


def smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """Calls one of two functions: at once if the value of `pred` is known, else by `tf.cond`.

    Args:
        pred: bool, 0, 1, or a scalar tensor or variable.
        true_fn: function without arguments.
        false_fn: likewise.
        name: name of the `tf.cond`.
    Returns:
        What the function returns.
    Raises:
        TypeError: if a function cannot be called, or `pred` is none of the above.

    >>> from etcmodel.layers import recomputing_dropout
    >>> recomputing_dropout.smart_cond(True, lambda: "yes", lambda: "no")
    'yes'
    """
    if not (callable(true_fn) and callable(false_fn)):
        raise TypeError(
            f"`true_fn` and `false_fn` must be callable. Received: {true_fn}, {false_fn}"
        )
    if isinstance(pred, tf.Variable):
        return tf.cond(tf.cast(pred, tf.bool), true_fn, false_fn, name=name)
    is_tensor = tf.is_tensor(pred)
    if not is_tensor and pred not in (0, 1):
        raise TypeError(f"`pred` must be a bool, 0, 1 or a scalar tensor. Received: {pred!r}")
    known = tf.get_static_value(pred) if is_tensor else pred
    if known is None:
        return tf.cond(tf.cast(pred, tf.bool), true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RecomputingDropout(base.Layer):
    """Dropout that draws the same mask again when activations are recomputed.

    See `etcmodel.ops.dropout`.

    Args:
        rate: float, at least 0 and below 1. Share of the elements that are set to 0.
        noise_shape: sequence of int or None, or None. Shape of the mask, which is broadcast over
            its axes of size 1; None for the sizes of the inputs.
        seed: int or None. Layers with different seeds draw different masks.
        force_recomputation: bool. Raises an error when something would be dropped outside
            `recompute_grad`.
    Call args:
        inputs: float tensor.
        training: bool, or a scalar tensor. Whether to apply dropout.
    Returns:
        Same shape as `inputs`.
    Raises:
        ValueError: if `rate` is out of range; or, with `force_recomputation`, for a call with
            `training` outside `recompute_grad`.

    >>> from etcmodel import layers
    >>> dropout = layers.RecomputingDropout(0.5)
    >>> dropout(tf.ones([2, 3])).numpy()
    array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    >>> sorted(set(dropout(tf.ones([99]), training=True).numpy().tolist()))
    [0.0, 2.0]
    """

    def __init__(self, rate, noise_shape=None, seed=None, force_recomputation=False, **kwargs):
        super().__init__(**kwargs)
        base.check_rates(rate=rate)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed
        self.force_recomputation = force_recomputation
        self.supports_masking = True

    def call(self, inputs, training=None):
        return smart_cond(
            False if training is None else training, lambda: self._drop(inputs), lambda: inputs
        )

    def _drop(self, inputs):
        if self.force_recomputation and recompute_grad.get_recompute_context() is None:
            raise ValueError(
                f"Layer {self.name!r} has `force_recomputation=True`: a RecomputeContext is "
                "required. Call it inside a function wrapped by `recompute_grad`."
            )
        return dropout_ops.dropout(inputs, self.rate, self.noise_shape, self.seed)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), **base.config_entries(self, __class__)}
