"""Text classifiers for any encoder, all fed with the same batches.

Batches are those of `EtcProcessor` (see `models.features`), with one text, or one pair of texts,
per row. Each encoder takes the features it knows. A system's class is set in its record
(`systems.System.classifier`).
"""

from etcmodel.models import heads, processed_batches, systems
from etcmodel.models.gmat.modeling import GmatForSequenceClassification
from etcmodel.models.longformer.modeling import LongformerForSequenceClassification
from etcmodel.models.modernbert.modeling import ModernBertForSequenceClassification


class EtcClassifier(processed_batches.ReadsProcessed, heads.EtcForSequenceClassification):
    """`EtcForSequenceClassification` for batches of `EtcProcessor`."""

    reads_as_head = True

    def read(self, features):
        return features


class LongformerClassifier(processed_batches.ReadsProcessed, LongformerForSequenceClassification):
    """`LongformerForSequenceClassification` for batches of `EtcProcessor`."""


class ModernBertClassifier(processed_batches.ReadsProcessed, ModernBertForSequenceClassification):
    """`ModernBertForSequenceClassification` for batches of `EtcProcessor`."""


class GmatClassifier(processed_batches.ReadsProcessed, GmatForSequenceClassification):
    """`GmatForSequenceClassification` for batches of `EtcProcessor`."""


def etc_classifier(config, num_labels, problem_type, pooling):
    """Creates an `EtcClassifier`: see `make_sequence_classifier`."""
    return EtcClassifier(config, num_labels=num_labels, pooling=pooling, problem_type=problem_type)


def of_first_token(head_class):
    """Returns the `systems.System.classifier` of a head that reads the first token."""

    def make(config, num_labels, problem_type, pooling):
        del pooling  # The head, or its config, says what it reads.
        return head_class(config, num_labels=num_labels, problem_type=problem_type)

    return make


longformer_classifier = of_first_token(LongformerClassifier)
modernbert_classifier = of_first_token(ModernBertClassifier)
gmat_classifier = of_first_token(GmatClassifier)


def make_sequence_classifier(config, *, num_labels, problem_type, pooling, skip_padding=False):
    """Creates a text classifier: from a batch of features to logits, float32 [batch, num_labels].

    Args:
        config: `EncoderConfig`.
        num_labels: int. Number of logits, 1 for a regression.
        problem_type: str. See `heads.of_text.SequenceClassification`.
        pooling: str. See `EtcForSequenceClassification`; other systems read their first token.
        skip_padding: bool. Whether to skip what is padding in the whole batch (`models.padding`).
    Raises:
        ValueError: naming the config's type, if there is no classifier for it.
    """
    make = systems.ability(config, "classifier", "Texts are classified")
    made = make(config, num_labels, problem_type, pooling)
    made.skip_padding = skip_padding
    return made
