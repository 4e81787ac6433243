"""Masked language models without global tokens, for pre-training."""

import functools

import tensorflow as tf

from etcmodel.models import encoders

from . import model

__all__ = ["make_text_model", "plain"]


class _ReadsWindows:
    """Calls a `MaskedLM` with a masked window of text, and returns what the loss needs.

    Call args:
        features: dict of int32 [batch, ...] as `masking.mask_window` makes it.
        training: bool.
    Returns:
        `mlm_loss` and `mlm_token_ids`: see `model.PretrainModel`.
    """

    def call(self, features, training=None):
        is_token = features["sentence_ids"] >= 0
        pad = self.encoder.config.pad_token_id  # Longformer needs it to count positions.
        batch = {
            "input_ids": tf.where(is_token, features["long_token_ids"], pad),
            "attention_mask": tf.cast(is_token, tf.int32),
        }
        hidden, _ = self.encode(batch, training)
        # Only tokens to predict: all logits would need most of the memory.
        logits = self.language_model(hidden, features["mlm_positions"])
        return model.mlm_outputs(logits, features["mlm_labels"])


@functools.cache
def _reads_windows(masked_lm):
    """Makes a class of the head that is called with windows."""
    return type(f"{masked_lm.__name__}OfWindows", (_ReadsWindows, masked_lm), {})


def make_text_model(config):
    """Makes a new model for masked windows; no token is global.

    Args:
        config: `EncoderConfig` of a system with a `masked_lm`.
    """
    return _reads_windows(encoders.encoder_type(config.model_type).masked_lm)(config)


def plain(pretrained):
    """Converts the model, with the same encoder, to the class that `save_pretrained` writes.

    Args:
        pretrained: the result of `make_text_model`.
    """
    encoder = pretrained.encoder
    made = encoders.encoder_type(encoder.config.model_type).masked_lm(encoder)
    made.language_model.set_weights(pretrained.language_model.get_weights())
    return made
