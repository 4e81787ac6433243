"""Token classifiers for any encoder, all fed with the same batches.

Batches are those of `EtcProcessor` (see `models.features`), with one text per row. Each encoder
takes the features it knows. A system's class is set in its record (`systems.System.tagger`).
"""

from etcmodel.models import heads, padding, processed_batches, systems
from etcmodel.models.bigbird.modeling import BigBirdForTokenClassification
from etcmodel.models.gmat.modeling import GmatForTokenClassification
from etcmodel.models.longformer.modeling import LongformerForTokenClassification
from etcmodel.models.modernbert.modeling import ModernBertForTokenClassification

__all__ = [
    "BigBirdTagger",
    "EtcTagger",
    "GmatTagger",
    "LongformerTagger",
    "ModernBertTagger",
    "ReadsProcessed",
    "make_token_classifier",
]


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

    def read(self, features):
        names = (*processed_batches.LONG_FEATURES, *processed_batches.GLOBAL_FEATURES)
        return {name: features[name] for name in names}


class LongformerTagger(ReadsProcessed, LongformerForTokenClassification):
    """`LongformerForTokenClassification` for batches of `EtcProcessor`.

    Their `global_attention_mask`, int [batch, long_len], if present, says which tokens are global.
    """

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
