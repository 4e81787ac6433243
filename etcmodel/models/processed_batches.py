"""Adapts batches of `EtcProcessor` (see `models.features`) to encoders."""

import tensorflow as tf

from etcmodel.layers.heads import MASKED_LOGIT
from etcmodel.models import heads, padding, systems
from etcmodel.models.gmat.modeling import GmatForSequenceClassification
from etcmodel.models.heads import losses
from etcmodel.models.longformer.modeling import (
    LongformerForQuestionAnswering,
    LongformerForSequenceClassification,
)

__all__ = [
    "GLOBAL_FEATURES",
    "LONG_FEATURES",
    "EtcClassifier",
    "EtcSpanReader",
    "GmatClassifier",
    "LongformerClassifier",
    "LongformerSpanReader",
    "ReadsProcessed",
    "etc_classifier",
    "etc_span_reader",
    "gmat_classifier",
    "is_text",
    "longformer_classifier",
    "loss",
    "make_sequence_classifier",
    "make_span_reader",
    "question_mask",
    "text_arguments",
    "without_padding",
]

LONG_FEATURES = ("token_ids", "segment_ids", "example_ids", "links")
GLOBAL_FEATURES = ("global_token_ids", "global_segment_ids", "global_example_ids")


class ReadsProcessed:
    """Calls a model with the features of a batch of `EtcProcessor` that its encoder takes.

    A mixin to list before the model's class, which has an `encoder`.

    Attributes:
        skip_padding: bool. Whether to leave out what is padding in the whole batch.
    """

    skip_padding = False
    token_feature = "token_ids"

    def read(self, features):
        """Returns the features that the model takes; by default those of an encoder of one text."""
        return text_arguments(features, self.encoder.config)

    def restored(self, outputs, features):
        """Pads outputs of a batch without padding to the lengths of the whole batch, `features`."""
        del features
        return outputs

    def call(self, features, training=None):
        if not self.skip_padding:
            return super().call(self.read(features), training=training)
        kept = self.read(without_padding(features))
        return self.restored(super().call(kept, training=training), features)


def without_padding(features):
    """Removes the positions that are padding in all rows of a batch: see `padding.cut`.

    Args:
        features: dict of int32 [batch, long_len] `LONG_FEATURES`, [batch, global_len]
            `GLOBAL_FEATURES`, and others, which stay whole.
    Returns:
        dict of tensors.
    """
    for name, names in (("example_ids", LONG_FEATURES), ("global_example_ids", GLOBAL_FEATURES)):
        features = padding.cut(features, features[name] > 0, names)
    return features


def text_arguments(features, config):
    """Returns the arguments of an encoder of one text, such as Longformer.

    Args:
        features: dict of int32 [batch, long_len] `token_ids`, `example_ids`, `segment_ids`.
        config: the encoder's config.
    Returns:
        dict of `input_ids`, `attention_mask`, and `token_type_ids` if the encoder has token types.
    """
    is_token = features["example_ids"] > 0
    batch = {
        # Longformer counts positions by the config's padding id, which may not be the vocabulary's.
        "input_ids": tf.where(is_token, features["token_ids"], config.pad_token_id),
        "attention_mask": tf.cast(is_token, tf.int32),
    }
    if config.type_vocab_size > 1:  # RoBERTa's checkpoints have only one.
        batch["token_type_ids"] = features["segment_ids"]
    return batch


def question_mask(features):
    """Marks [CLS] and the question's long tokens, without its separator.

    Args:
        features: dict of int32 [batch, long_len] `example_ids`, `segment_ids`, `links`. Each row
            has one example with a question, and its first global token stands for the whole.
    Returns:
        bool [batch, long_len].
    """
    is_first = tf.range(tf.shape(features["links"])[1]) == 0
    is_question = (features["segment_ids"] == 0) & ((features["links"] > 0) | is_first)
    return is_question & (features["example_ids"] > 0)


def is_text(features):
    """Marks the long tokens of the text behind the question: bool [batch, long_len].

    Args:
        features: as in `question_mask`.
    """
    return (features["segment_ids"] > 0) & (features["links"] > 0)


# Text classifiers for any encoder, all fed with the same batches.
#
# Batches are those of `EtcProcessor` (see `models.features`), with one text, or one pair of texts,
# per row. Each encoder takes the features it knows. A system's class is set in its record
# (`systems.System.classifier`).


class EtcClassifier(ReadsProcessed, heads.EtcForSequenceClassification):
    """`EtcForSequenceClassification` for batches of `EtcProcessor`."""

    def read(self, features):
        return features


class LongformerClassifier(ReadsProcessed, LongformerForSequenceClassification):
    """`LongformerForSequenceClassification` for batches of `EtcProcessor`."""


class GmatClassifier(ReadsProcessed, GmatForSequenceClassification):
    """`GmatForSequenceClassification` for batches of `EtcProcessor`."""


def etc_classifier(config, num_labels, problem_type, pooling):
    """Creates an `EtcClassifier`: see `make_sequence_classifier`."""
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


# Extractive question answering for any encoder, all fed with the same batches.
#
# Batches are those of `EtcProcessor` (see `models.features`), with a question and a text per row.
# Each encoder takes the features it knows. A system's class is set in its record
# (`systems.System.span_reader`).


class _ReadsProcessed(ReadsProcessed):
    def restored(self, outputs, features):
        is_real = features["example_ids"] > 0
        return {end: padding.restored(x, is_real, MASKED_LOGIT) for end, x in outputs.items()}


class EtcSpanReader(_ReadsProcessed, heads.EtcForQuestionAnswering):
    """`EtcForQuestionAnswering` without types of answers and evidence.

    Features that records have for decoding are ignored.
    """

    def read(self, features):
        names = (*LONG_FEATURES, *GLOBAL_FEATURES)
        return {name: features[name] for name in names}


class LongformerSpanReader(_ReadsProcessed, LongformerForQuestionAnswering):
    """`LongformerForQuestionAnswering` for such a batch; [CLS] and the question are global."""

    def read(self, features):
        is_global = tf.cast(question_mask(features), tf.int32)
        return {**super().read(features), "global_attention_mask": is_global}


def etc_span_reader(config):
    """Creates an `EtcSpanReader` from a config."""
    return EtcSpanReader(config, answer_types=(), evidence=False)


def make_span_reader(config, *, skip_padding=False):
    """Creates a model that scores where answers start and end, from a batch of features.

    Its output is a dict of logits, `start` and `end`, float32 [batch, long_len].

    Args:
        config: `EncoderConfig`.
        skip_padding: bool. Whether to skip what is padding in the whole batch (`models.padding`);
            its logit is -1e9.
    Raises:
        ValueError: naming the config's type, if there is no such model for it.
    """
    system = systems.find(config.model_type)
    if system is None or system.span_reader is None:
        known = ", ".join(repr(x.model_type) for x in systems.having("span_reader"))
        raise ValueError(
            f"Answers are found by models of `model_type` {known}. Received: {config.model_type!r}"
        )
    made = system.span_reader(config)
    made.skip_padding = skip_padding
    return made


def loss(outputs, features):
    """Computes the mean loss of a batch, of both ends, by a softmax over the tokens of each text.

    Args:
        outputs: dict of `start` and `end`, float32 [batch, long_len].
        features: dict of `labels/starts` and `labels/ends`, int 0/1 [batch, long_len], 1 at every
            right position; and those of `is_text`.
    Returns:
        dict of float32 scalars: "loss", "start_loss" and "end_loss".
    """
    allowed, parts = is_text(features), {}
    for end in ("start", "end"):
        is_right = features[f"labels/{end}s"] > 0
        costs = losses.any_position_crossentropy(outputs[end], is_right, allowed)
        parts[f"{end}_loss"] = tf.reduce_mean(costs)
    return {"loss": tf.add_n(list(parts.values())) / len(parts), **parts}
