"""Classifiers of texts for whatever encoder: one batch of features fits all of them.

The batch is that of `EtcProcessor` (see `models.features`), with one text, or one pair of texts, a
row. An encoder takes of it what it knows; a system is added by an entry of `_MAKERS`.
"""

from etcmodel.models import heads, processed_batches
from etcmodel.models.config import EtcConfig
from etcmodel.models.gmat.config import GmatConfig
from etcmodel.models.gmat.heads import GmatForSequenceClassification
from etcmodel.models.longformer.config import LongformerConfig
from etcmodel.models.longformer.heads import LongformerForSequenceClassification

__all__ = ["EtcClassifier", "GmatClassifier", "LongformerClassifier", "make_sequence_classifier"]


class EtcClassifier(processed_batches.ReadsProcessed, heads.EtcForSequenceClassification):
    """`EtcForSequenceClassification` of a batch of `EtcProcessor`."""

    def read(self, features):
        return features


class LongformerClassifier(processed_batches.ReadsProcessed, LongformerForSequenceClassification):
    """`LongformerForSequenceClassification` of a batch of `EtcProcessor`."""


class GmatClassifier(processed_batches.ReadsProcessed, GmatForSequenceClassification):
    """`GmatForSequenceClassification` of a batch of `EtcProcessor`."""


def _etc(config, num_labels, problem_type, pooling):
    is_multi_label = problem_type == "multi_label_classification"
    return EtcClassifier(config, num_labels=num_labels, pooling=pooling, multi_label=is_multi_label)


def _of_text(head_class):
    def make(config, num_labels, problem_type, pooling):
        del pooling
        return head_class(config, num_labels=num_labels, problem_type=problem_type)

    return make


_MAKERS = {
    EtcConfig.model_type: _etc,
    LongformerConfig.model_type: _of_text(LongformerClassifier),
    GmatConfig.model_type: _of_text(GmatClassifier),
}


def make_sequence_classifier(config, *, num_labels, problem_type, pooling, skip_padding=False):
    """A new `heads.EncoderWithHead`, from a batch of features to float32 [batch, num_labels].

    Args:
        config: `EncoderConfig`.
        num_labels: int. Logits, 1 in a regression.
        problem_type: str. See `heads.of_text.SequenceClassification`.
        pooling: str. See `EtcForSequenceClassification`; the others read their first token.
        skip_padding: bool. What is padding in the whole batch is not encoded (`models.padding`).
    Raises:
        ValueError: naming the config's type, if there is no classifier for it.
    """
    if config.model_type not in _MAKERS:
        raise ValueError(
            "Texts are classified by models of `model_type` "
            f"{', '.join(map(repr, _MAKERS))}. Received: {config.model_type!r}"
        )
    made = _MAKERS[config.model_type](config, num_labels, problem_type, pooling)
    made.skip_padding = skip_padding
    return made
