"""The character model for training and evaluation, and its loss."""

import math

import tensorflow as tf
import tf_keras

from etcmodel.layers import sublayers
from etcmodel.models import encoders

__all__ = ["NextCharacterModel", "loss"]


class NextCharacterModel(tf_keras.Model):
    """Computes the cross entropy of each character of a sequence, except the first.

    Args:
        encoder_config: `CharLmConfig`.
        **kwargs: arguments of the Keras model.
    Call args:
        features: dict with int32 `characters` [batch, length + 1].
        training: bool.
    Returns:
        dict of float32 `losses` [batch, length], in nats.
    """

    def __init__(self, encoder_config, **kwargs):
        super().__init__(**{"name": "next_character", **kwargs})
        self.language_model = encoders.make_encoder(encoder_config)

    def build(self, input_shape=None):
        sublayers.build_sublayer(self.language_model, None)
        self.built = True

    def call(self, features, training=None):
        characters = features["characters"]
        logits = self.language_model(characters[:, :-1], training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(characters[:, 1:], logits)
        return {"losses": losses}


def loss(outputs):
    """dict of float32 scalars: the mean "loss" in nats, and the same as "bits_per_character"."""
    mean = tf.reduce_mean(outputs["losses"])
    return {"loss": mean, "bits_per_character": mean / math.log(2)}
