"""Classifiers of texts for whatever encoder: one batch of features fits all of them.

The batch is that of `EtcProcessor` (see `models.features`), with one text, or one pair of texts, a
row. An encoder takes of it what it knows; which class a system has is said in its record
(`systems.System.classifier`).
"""

from etcmodel.models import heads, processed_batches, systems
from etcmodel.models.gmat.heads import GmatForSequenceClassification
from etcmodel.models.longformer.heads import LongformerForSequenceClassification

__all__ = [
    "EtcClassifier",
    "GmatClassifier",
    "LongformerClassifier",
    "etc_classifier",
    "gmat_classifier",
    "longformer_classifier",
    "make_sequence_classifier",
]


class EtcClassifier(processed_batches.ReadsProcessed, heads.EtcForSequenceClassification):
    """`EtcForSequenceClassification` of a batch of `EtcProcessor`."""

    def read(self, features):
        return features


class LongformerClassifier(processed_batches.ReadsProcessed, LongformerForSequenceClassification):
    """`LongformerForSequenceClassification` of a batch of `EtcProcessor`."""


class GmatClassifier(processed_batches.ReadsProcessed, GmatForSequenceClassification):
    """`GmatForSequenceClassification` of a batch of `EtcProcessor`."""


def etc_classifier(config, num_labels, problem_type, pooling):
    """An `EtcClassifier`: see `make_sequence_classifier`."""
    is_multi_label = problem_type == "multi_label_classification"
    return EtcClassifier(config, num_labels=num_labels, pooling=pooling, multi_label=is_multi_label)


def _of_text(head_class):
    def make(config, num_labels, problem_type, pooling):
        del pooling  # The head reads the first token.
        return head_class(config, num_labels=num_labels, problem_type=problem_type)

    return make


longformer_classifier = _of_text(LongformerClassifier)
gmat_classifier = _of_text(GmatClassifier)


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
    system = systems.find(config.model_type)
    if system is None or system.classifier is None:
        known = ", ".join(repr(x.model_type) for x in systems.having("classifier"))
        raise ValueError(
            f"Texts are classified by models of `model_type` {known}. "
            f"Received: {config.model_type!r}"
        )
    made = system.classifier(config, num_labels, problem_type, pooling)
    made.skip_padding = skip_padding
    return made
