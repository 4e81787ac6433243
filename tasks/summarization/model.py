"""The model: teacher forcing in training, generation otherwise."""

import dataclasses

import tensorflow as tf
import tf_keras

from etcmodel.autograph import without_autograph
from etcmodel.checkpoints import seq2seq
from etcmodel.layers import sublayers
from etcmodel.models import padding

__all__ = ["Summarizer"]


class Summarizer(tf_keras.Model):
    """An LED, LongT5, PEGASUS-X or BigBird-Pegasus as a task's model.

    Args:
        config: `LedConfig`, `LongT5Config`, `PegasusXConfig` or `BigBirdPegasusConfig`.
        make_settings: function that returns the `GenerationSettings`; called when a summary is
            generated.
    Call args:
        features: dict of `input_ids` and `attention_mask`, int [batch, length], and in training
            `labels`, int [batch, target_length], -100 for padding.
        training: bool.
    Returns:
        dict: in training `logits`, float32 [batch, target_length, vocab_size]; else `sequences`,
        int32 [batch, max_length], padded after the end token.
    """

    def __init__(self, config, make_settings, name="summarizer"):
        super().__init__(name=name)
        self._autocast = False  # Features are ids.
        self.generator = seq2seq.make_model(config)
        self._make_settings = make_settings

    def build(self, input_shape=None):
        """Creates all variables; their sizes depend only on the config."""
        if not self.built:
            sublayers.build_sublayer(self.generator, tf.TensorShape([None, None]))
            self.built = True

    @without_autograph
    def call(self, features, training=None):
        features = padding.cut_text(features)
        ids, mask = features["input_ids"], features["attention_mask"]
        if training:
            outputs = self.generator(ids, mask, labels=features["labels"], training=True)
            return {"logits": outputs["logits"]}
        # AutoGraph is not needed, and would warn.
        return tf.autograph.experimental.do_not_convert(self._summaries)(ids, mask)

    def _summaries(self, ids, mask):
        settings = self._make_settings()
        found = self.generator.generate(ids, mask, **dataclasses.asdict(settings))["sequences"]
        rest = settings.max_length - tf.shape(found)[1]
        return {"sequences": tf.pad(found, [[0, 0], [0, rest]])}
