"""A classifier on ETC with random weights, and its export, for benchmarks of serving."""

import tensorflow as tf
import tf_keras

from etcmodel import serving
from etcmodel.models import input_utils, modeling

__all__ = ["Classifier", "export", "made_up_example"]

_NUM_LABELS = 3
_AXES = {"token_ids": "long", "sentence_ids": "long", "global_token_ids": "global"}


class Classifier(tf_keras.Model):
    """Probabilities of labels from the first global token.

    Args:
        config: `EtcConfig`.
    Call args:
        features: dict of int32 `token_ids` and `sentence_ids` [batch, long_len] and
            `global_token_ids` [batch, global_len].
        training: bool.
    Returns:
        dict of float32 `probabilities` [batch, 3].
    """

    def __init__(self, config):
        super().__init__()
        self.encoder = modeling.EtcModel(config)
        self.head = tf_keras.layers.Dense(_NUM_LABELS, "softmax", dtype="float32")

    def call(self, features, training=None):
        ids, global_ids = features["token_ids"], features["global_token_ids"]
        structure = input_utils.make_structure_from_example_ids(
            tf.ones_like(ids),
            tf.ones_like(global_ids),
            features["sentence_ids"],
            self.encoder.config.relative_pos_max_distance,
        )
        _, hidden = self.encoder(ids, global_ids, structure=structure, training=training)
        return {"probabilities": self.head(hidden[:, 0])}


def made_up_example(length, global_length, vocab_size):
    """Features without the batch axis: dict of lists of int; a global token a sentence.

    Args:
        length: int. Long tokens.
        global_length: int. Global tokens, no more than long ones.
        vocab_size: int. Token ids are below it.
    """
    return {
        "token_ids": [7 + number % (vocab_size - 7) for number in range(length)],
        "global_token_ids": [1] * global_length,
        "sentence_ids": [number * global_length // length for number in range(length)],
    }


def export(model, directory):
    """Writes a built `Classifier` as a SavedModel; returns the directory."""
    features = {name: tf.io.FixedLenFeature([None], tf.int64) for name in _AXES}
    return serving.export_saved_model(model, directory, features=features, assets={}, axes=_AXES)
