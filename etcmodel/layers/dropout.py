"""Dropout as a layer."""

import tf_keras

from etcmodel.ops import dropout as dropout_ops

__all__ = ["RecomputingDropout"]


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RecomputingDropout(tf_keras.layers.Layer):
    """Dropout that draws the same mask again when activations are recomputed.

    See `etcmodel.ops.dropout`.

    Args:
        rate: float, at least 0 and below 1. Share of the elements that are set to 0.
    Raises:
        ValueError: if `rate` is out of range.
    """

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be at least 0 and below 1. Received: {rate=}")
        self.rate = rate

    def call(self, inputs, training=None):
        if not training or self.rate == 0:
            return inputs
        return dropout_ops.dropout(inputs, self.rate)

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}
