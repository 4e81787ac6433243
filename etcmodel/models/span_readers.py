"""Extractive question answering for any encoder, all fed with the same batches.

Batches are those of `EtcProcessor` (see `models.features`), with a question and a text per row.
Each encoder takes the features it knows. A system's class is set in its record
(`systems.System.span_reader`).
"""

import tensorflow as tf

from etcmodel.layers.heads import MASKED_LOGIT
from etcmodel.models import heads, padding, processed_batches, systems
from etcmodel.models.gmat.modeling import GmatForQuestionAnswering
from etcmodel.models.heads import losses
from etcmodel.models.longformer.modeling import LongformerForQuestionAnswering
from etcmodel.models.modernbert.modeling import ModernBertForQuestionAnswering

__all__ = [
    "EtcSpanReader",
    "GmatSpanReader",
    "LongformerSpanReader",
    "ModernBertSpanReader",
    "ReadsProcessed",
    "etc_span_reader",
    "loss",
    "make_span_reader",
]


class ReadsProcessed(processed_batches.ReadsProcessed):
    """See `processed_batches.ReadsProcessed`; for heads whose outputs are logits of tokens."""

    def restored(self, outputs, features):
        is_real = features["example_ids"] > 0
        return {end: padding.restored(x, is_real, MASKED_LOGIT) for end, x in outputs.items()}


class EtcSpanReader(ReadsProcessed, heads.EtcForQuestionAnswering):
    """`EtcForQuestionAnswering` without types of answers and evidence.

    Features that records have for decoding are ignored.
    """

    def read(self, features):
        names = (*processed_batches.LONG_FEATURES, *processed_batches.GLOBAL_FEATURES)
        return {name: features[name] for name in names}


class LongformerSpanReader(ReadsProcessed, LongformerForQuestionAnswering):
    """`LongformerForQuestionAnswering` for such a batch; [CLS] and the question are global."""

    def read(self, features):
        is_global = tf.cast(processed_batches.question_mask(features), tf.int32)
        return {**super().read(features), "global_attention_mask": is_global}


class ModernBertSpanReader(ReadsProcessed, ModernBertForQuestionAnswering):
    """`ModernBertForQuestionAnswering` for such a batch."""


class GmatSpanReader(ReadsProcessed, GmatForQuestionAnswering):
    """`GmatForQuestionAnswering` for such a batch."""


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
    make = systems.ability(config, "span_reader", "Answers are found")
    made = make(config)
    made.skip_padding = skip_padding
    return made


def loss(outputs, features, *, first_is_null=False):
    """Computes the mean loss of a batch, of both ends, by a softmax over the tokens of each text.

    Args:
        outputs: dict of `start` and `end`, float32 [batch, long_len].
        features: dict of `labels/starts` and `labels/ends`, int 0/1 [batch, long_len], 1 at every
            right position; and those of `processed_batches.is_text`.
        first_is_null: bool. Whether the softmax is also over the first token, [CLS], which stands
            for "no answer here" (Devlin et al. 2018, arXiv:1810.04805, section 4.3).
    Returns:
        dict of float32 scalars: "loss", "start_loss" and "end_loss".
    """
    allowed, parts = processed_batches.is_text(features), {}
    if first_is_null:
        allowed |= tf.range(tf.shape(allowed)[1]) == 0
    for end in ("start", "end"):
        is_right = features[f"labels/{end}s"] > 0
        costs = losses.any_position_crossentropy(outputs[end], is_right, allowed)
        parts[f"{end}_loss"] = tf.reduce_mean(costs)
    return {"loss": tf.add_n(list(parts.values())) / len(parts), **parts}
