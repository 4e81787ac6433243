"""Normalization layers."""

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.layers import base
from etcmodel.ops import normalization as normalization_ops


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class LayerNormalization(tf_keras.layers.LayerNormalization):
    """Keras's layer normalization of the last axis, in fewer passes over memory."""

    @without_autograph
    def call(self, inputs):
        gamma = tf.convert_to_tensor(self.gamma)
        beta = tf.convert_to_tensor(self.beta) if self.center else tf.zeros_like(gamma)
        return normalization_ops.layer_norm(inputs, gamma, beta, self.epsilon)


@tf_keras.utils.register_keras_serializable(package="etcmodel")
class RmsNormalization(base.Layer):
    """RMS normalization, T5's layer normalization: scales by the root mean square of the last axis.

    Args:
        epsilon: float. Added to the mean square.
        name: name of the layer.
    Call args:
        inputs: float [..., size].
    Returns:
        Same shape as `inputs`.
    """

    def __init__(self, epsilon=1e-6, name="layer_norm", **kwargs):
        super().__init__(name=name, **kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        self.gamma = self.add_weight(name="gamma", shape=(input_shape[-1],), initializer="ones")
        super().build(input_shape)

    def call(self, inputs):
        return normalization_ops.rms_norm(inputs, tf.convert_to_tensor(self.gamma), self.epsilon)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
