"""Extractive question answering for any encoder, all fed with the same batches.

Batches are those of `EtcProcessor` (see `models.features`), with a question and a text per row.
Each encoder takes the features it knows. A system's class is set in its record
(`systems.System.span_reader`).
"""

import tensorflow as tf

from etcmodel.layers.heads import MASKED_LOGIT
from etcmodel.models import heads, padding, processed_batches, systems
from etcmodel.models.gmat.config import GmatConfig
from etcmodel.models.gmat.modeling import GmatForQuestionAnswering
from etcmodel.models.heads import losses
from etcmodel.models.longformer.modeling import LongformerForQuestionAnswering
from etcmodel.models.modernbert.modeling import ModernBertForQuestionAnswering


class ReadsProcessed(processed_batches.ReadsProcessed):
    """See `processed_batches.ReadsProcessed`; for heads whose outputs are logits of tokens.

    Args:
        encoder, **kwargs: of the head.
        tags_facts: bool. Whether to also score each token as being part of a supporting fact:
            output `facts`, float32 logits [batch, long_len, 2] of no and yes (Gupta and Berant
            2020, arXiv:2006.03274, appendix A.3).
    """

    def __init__(self, encoder, *, tags_facts: bool = False, **kwargs):
        self._tags_facts = tags_facts  # Needed when the head is made.
        super().__init__(encoder, **kwargs)

    def make_head(self):
        super().make_head()
        self.facts = self.token_logits(2, name="facts") if self._tags_facts else None

    def head(self, hidden, *others):
        outputs = super().head(hidden, *others)
        return outputs if self.facts is None else {**outputs, "facts": self.facts(hidden)}

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
    """`GmatForQuestionAnswering` for such a batch.

    Args:
        encoder, **kwargs: of `ReadsProcessed`.
        question_as_memory: bool. Whether the question's first tokens replace the embeddings of
            memory; memory beyond a shorter question is masked (Gupta and Berant 2020, section 4.4).
    """

    def __init__(self, encoder, *, question_as_memory: bool = False, **kwargs):
        super().__init__(encoder, **kwargs)
        self.question_as_memory = question_as_memory
        if question_as_memory and not self.encoder.config.num_memory_tokens:
            raise ValueError(
                "The question can be memory (--question_as_memory) of a GMAT with memory alone: "
                "the config's `num_memory_tokens` is 0."
            )

    def read(self, features):
        arguments = super().read(features)
        if not self.question_as_memory:
            return arguments
        size = self.encoder.config.num_memory_tokens
        # Behind [CLS].
        mask = tf.cast(processed_batches.question_mask(features), tf.int32)[:, 1 : 1 + size]
        ids = arguments["input_ids"][:, 1 : 1 + size] * mask
        ids, mask = (tf.pad(x, [[0, 0], [0, size - tf.shape(x)[1]]]) for x in (ids, mask))
        shape = [None, size]
        memory = {"memory_ids": tf.ensure_shape(ids, shape)}
        return {**arguments, **memory, "memory_mask": tf.ensure_shape(mask, shape)}


def etc_span_reader(config, **options):
    """Creates an `EtcSpanReader` from a config."""
    return EtcSpanReader(config, answer_types=(), evidence=False, **options)


def make_span_reader(config, *, skip_padding=False, tags_facts=False, question_as_memory=False):
    """Creates a model that scores where answers start and end, from a batch of features.

    Its output is a dict of logits, `start` and `end`, float32 [batch, long_len].

    Args:
        config: `EncoderConfig`.
        skip_padding: bool. Whether to skip what is padding in the whole batch (`models.padding`);
            its logit is -1e9.
        tags_facts: see `ReadsProcessed`.
        question_as_memory: see `GmatSpanReader`.
    Raises:
        ValueError: naming the config's type, if there is no such model for it, or it has no memory
            for a question.
    """
    make = systems.ability(config, "span_reader", "Answers are found")
    options = {"tags_facts": tags_facts} if tags_facts else {}
    if question_as_memory:
        if not isinstance(config, GmatConfig):
            raise ValueError(
                "The question can be memory (--question_as_memory) in a GMAT alone, not in "
                f"{config.model_type!r}."
            )
        options["question_as_memory"] = True
    made = make(config, **options)
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


def facts_loss(outputs, features):
    """Computes the mean loss of tagging tokens of supporting facts, of a batch: float32 scalar.

    Tokens of facts and all others have the same weight in total, within each text; padding has
    none (Gupta and Berant 2020, appendix A.3: "weighted according to the respective class size").

    Args:
        outputs: dict of `facts`, float32 [batch, long_len, 2].
        features: dict of `labels/facts`, int 0/1 [batch, long_len], and `example_ids`.
    """
    tags = tf.cast(features["labels/facts"], tf.int32)
    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, outputs["facts"])
    of_class = (
        tf.one_hot(tags, 2) * tf.cast(features["example_ids"] > 0, tf.float32)[..., tf.newaxis]
    )
    sizes = tf.reduce_sum(of_class, axis=1)
    means = tf.math.divide_no_nan(tf.einsum("bl,blc->bc", costs, of_class), sizes)
    present = tf.reduce_sum(tf.cast(sizes > 0, tf.float32), axis=1)
    return tf.reduce_mean(tf.math.divide_no_nan(tf.reduce_sum(means, axis=1), present))
