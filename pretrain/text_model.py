"""Masked language models of text alone, as pre-training calls them."""

import tensorflow as tf

from etcmodel.models.gmat.heads import GmatForMaskedLM
from etcmodel.models.longformer.heads import LongformerForMaskedLM

from . import model

__all__ = ["GmatPretrainModel", "LongformerPretrainModel", "plain"]


class _ReadsWindows:
    """Calls a `MaskedLM` with a masked window of text, and tells what the loss needs.

    Call args:
        features: dict of int32 [batch, ...] as `masking.mask_window` makes it.
        training: bool.
    Returns:
        `mlm_loss` and `mlm_token_ids`: see `model.PretrainModel`.
    """

    def call(self, features, training=None):
        is_token = features["sentence_ids"] >= 0
        pad = self.encoder.config.pad_token_id  # By which Longformer counts positions.
        batch = {
            "input_ids": tf.where(is_token, features["long_token_ids"], pad),
            "attention_mask": tf.cast(is_token, tf.int32),
        }
        hidden, _ = self.encode(batch, training)
        # Only tokens to predict: all logits would take most of the memory.
        logits = self.language_model(hidden, features["mlm_positions"])
        return model.mlm_outputs(logits, features["mlm_labels"])


class LongformerPretrainModel(_ReadsWindows, LongformerForMaskedLM):
    """`LongformerForMaskedLM` of masked windows; no token is global."""


class GmatPretrainModel(_ReadsWindows, GmatForMaskedLM):
    """`GmatForMaskedLM` of masked windows."""


def plain(pretrained):
    """The same model with the same encoder, in the class that `save_pretrained` writes.

    Args:
        pretrained: one of the models of this module.
    """
    head_class = next(x for x in type(pretrained).__mro__ if x.__module__ != __name__)
    made = head_class(pretrained.encoder)
    made.language_model.set_weights(pretrained.language_model.get_weights())
    return made
