"""Token classifiers for any encoder, all fed with the same batches.

Batches are those of `EtcProcessor` (see `models.features`), with one text per row. Each encoder
takes the features it knows. A system's class is set in its record (`systems.System.tagger`).
"""

import inspect

import tensorflow as tf

from etcmodel.models import encoders, heads, padding, processed_batches, systems
from etcmodel.models import features as features_lib
from etcmodel.models.bigbird.modeling import BigBirdForTokenClassification
from etcmodel.models.gmat.modeling import GmatForTokenClassification
from etcmodel.models.longformer.modeling import LongformerForTokenClassification
from etcmodel.models.modernbert.modeling import ModernBertForTokenClassification


class ReadsProcessed(processed_batches.ReadsProcessed):
    """See `processed_batches.ReadsProcessed`; for heads whose outputs are logits of tokens.

    Their outputs are a dict of `logits`. Padding that was skipped has logits 0.
    """

    def restored(self, outputs, features):
        return padding.restored(outputs, features["example_ids"] > 0)

    def call(self, features, training=None):
        return {"logits": super().call(features, training=training)}


class EtcTagger(ReadsProcessed, heads.EtcForTokenClassification):
    """`EtcForTokenClassification` for batches of `EtcProcessor`."""

    reads_as_head = True

    def read(self, features):
        names = (*processed_batches.LONG_FEATURES, *processed_batches.GLOBAL_FEATURES)
        return {name: features[name] for name in names}


class LongformerTagger(ReadsProcessed, LongformerForTokenClassification):
    """`LongformerForTokenClassification` for batches of `EtcProcessor`.

    Their `global_attention_mask`, int [batch, long_len], if present, says which tokens are global.
    """

    reads_as_head = True

    def read(self, features):
        given = {x: features[x] for x in ("global_attention_mask",) if x in features}
        return {**super().read(features), **given}


class BigBirdTagger(ReadsProcessed, BigBirdForTokenClassification):
    """`BigBirdForTokenClassification` for batches of `EtcProcessor`."""


class ModernBertTagger(ReadsProcessed, ModernBertForTokenClassification):
    """`ModernBertForTokenClassification` for batches of `EtcProcessor`."""


class GmatTagger(ReadsProcessed, GmatForTokenClassification):
    """`GmatForTokenClassification` for batches of `EtcProcessor`."""


def make_token_classifier(config, *, num_labels, skip_padding=False):
    """Creates a token classifier: from a batch of features to a dict of logits.

    Args:
        config: `EncoderConfig`.
        num_labels: int.
        skip_padding: bool. Whether to skip what is padding in the whole batch (`models.padding`).
    Returns:
        tf_keras.Model. Its output is {"logits": float32 [batch, long_len, num_labels]}.
    Raises:
        ValueError: naming the config's type, if there is no such model for it.
    """
    make = systems.ability(config, "tagger", "Tokens are classified")
    made = make(config, num_labels=num_labels)
    made.skip_padding = skip_padding
    return made


def make_token_encoder(config, what):
    """Creates the encoder of such a classifier, not yet built, for a model with heads of its own.

    Args:
        config: `EncoderConfig`.
        what: str. What the model does, for the error, such as "Tokens are classified".
    Raises:
        ValueError: naming the config's type, if there is no such classifier for it.
    """
    tagger = systems.ability(config, "tagger", what)
    return getattr(tagger, "make_encoder", encoders.make_encoder)(config)


def hidden_states(encoder, features, *, training=None, skip_padding=False):
    """Encodes a batch of `EtcProcessor` with any encoder.

    Args:
        encoder: of `make_token_encoder`.
        features: dict of int [batch, long_len] `token_ids`, `segment_ids`, `example_ids`;
            optionally `global_attention_mask`, 1 for tokens that are global in Longformer; for ETC
            all features of such a batch (see `models.features`).
        training: bool.
        skip_padding: bool. Whether to skip what is padding in the whole batch (`models.padding`);
            its hidden states are 0. Without effect for encoders whose attention depends on the
            length of the row.
    Returns:
        float [batch, long_len, hidden_size].
    """
    config, whole = encoder.config, features
    if skip_padding and processed_batches.may_skip_padding(config):
        features = processed_batches.without_padding(features)
    if encoders.has_global_input(config):
        arguments = features_lib.completed(features, config).arguments
    else:
        arguments = processed_batches.text_arguments(features, config)
        known = inspect.signature(encoder.call).parameters
        chosen = {"global_attention_mask"}.intersection(known, features)
        arguments |= {name: features[name] for name in chosen}
    outputs = encoder(**arguments, training=training)
    outputs = [x for x in tf.nest.flatten(outputs) if x is not None]
    # So that variables of an output that is not used get a gradient of 0, not None.
    hidden = tf.identity_n(outputs)[0]
    return padding.restored(hidden, whole["example_ids"] > 0)
