"""Question answering: a span, yes or no, or no answer, and the supporting sentences."""

import typing

import tensorflow as tf

from etcmodel import shown_values
from etcmodel.layers import heads
from etcmodel.models import pooling as pooling_lib
from etcmodel.models.heads import base, losses
from etcmodel.models.heads.selection import sentence_logits

__all__ = ["ANSWER_TYPES", "EtcForQuestionAnswering", "best_spans"]

ANSWER_TYPES = ("span", "yes", "no", "no_answer")
_SPAN = "span"
_ENDS = ("start", "end")


@base.register_head
class EtcForQuestionAnswering(base.HeadModel):
    """Question answering: a span of the text, the type of the answer, and supporting sentences.

    Labels are a dict by output: int [batch] `start` and `end`, the first and the last token of the
    answer; int [batch] `type`, an index of `answer_types`; and 0/1 [batch, global_len] `evidence`.
    Labels of -1 are ignored, and so are outputs without labels.

    Args:
        encoder: `EtcModel`, or the `EtcConfig` of a new one; see `HeadModel`.
        answer_types: sequence of distinct str. The kinds of answers, among them "span", to which
            `start` and `end` belong; empty if all answers are spans.
        evidence: bool. Whether to score sentences, by their global tokens, as evidence.
        pooling: 'mean', 'first' or 'first_global': see `models.pooling.pool`. How the vectors for
            the answer's type are pooled.
        **kwargs: of `HeadModel`.
    Call args: see `HeadModel`.
    Returns:
        dict of float32 logits: `start`, `end` [batch, long_len], -1e9 for padding; `type` [batch,
        number of types]; `evidence` [batch, global_len], -1e9 for padding.
    Raises:
        ValueError: see `HeadModel`; also if `answer_types` are invalid.

    >>> config = etcmodel.EtcConfig(128, hidden_size=12, num_hidden_layers=1)
    >>> logits = etcmodel.EtcForQuestionAnswering(config)([[2, 7, 3, 8, 9, 3]])
    >>> {name: tuple(x.shape) for name, x in logits.items()}
    {'start': (1, 6), 'end': (1, 6), 'type': (1, 4), 'evidence': (1, 1)}
    """

    head_type = "question_answering"

    def __init__(
        self,
        encoder,
        *,
        answer_types: tuple[str, ...] = ANSWER_TYPES,
        evidence: bool = True,
        pooling: typing.Literal[pooling_lib.OF_TEXTS] = "mean",
        **kwargs,
    ):
        own = {
            "answer_types": _checked_types(answer_types),
            "evidence": evidence,
            "pooling": pooling,
        }
        super().__init__(encoder, own=own, **kwargs)

    def make_head(self):
        initializer_range = self.encoder.config.initializer_range
        self.span = self.built_on_hidden(
            heads.SpanLogits(_ENDS, initializer_range, name="span", dtype="float32")
        )
        self.type = self.token_logits(len(self.answer_types), "type") if self.answer_types else None
        self.sentence = self.token_logits(1, "evidence") if self.evidence else None

    def head(self, long_output, global_output, inputs, training):
        outputs = self.span(self.dropout(long_output, training=training), allowed=inputs.mask)
        if self.type is not None:
            outputs["type"] = self.type(self.pooled(long_output, global_output, inputs, training))
        if self.sentence is not None:
            hidden = self.dropout(global_output, training=training)
            outputs["evidence"] = sentence_logits(self.sentence, hidden, inputs)
        return outputs

    def _by_output(self, of_sparse, of_binary):
        made = {name: of_sparse() for name in _ENDS}
        if self.type is not None:
            made["type"] = of_sparse()
        if self.sentence is not None:
            made["evidence"] = of_binary()
        return made

    def default_loss(self):
        return self._by_output(losses.SparseCrossentropy, losses.BinaryCrossentropy)

    def default_metrics(self):
        return self._by_output(losses.SparseAccuracy, losses.BinaryAccuracy)


def _checked_types(answer_types):
    """Checks the types and returns them as a tuple of str.

    Raises:
        ValueError: if they are not distinct str, or `_SPAN` is not among them.
    """
    is_list = isinstance(answer_types, (list, tuple))
    types = tuple(answer_types) if is_list else ()
    are_names = is_list and all(isinstance(x, str) and x for x in types)
    if not are_names or len(set(types)) < len(types) or (types and _SPAN not in types):
        raise ValueError(
            f"`answer_types` must be different names, {_SPAN!r} among them, of which `start` and "
            "`end` tell the place; or empty if all answers are spans. Received: "
            f"{shown_values.shown(answer_types)}"
        )
    return types


def best_spans(outputs, max_length=30):
    """Finds the best span of each example, among its 50 best starts and 50 best ends.

    Args:
        outputs: dict, the outputs of `EtcForQuestionAnswering`.
        max_length: int. The most tokens of an answer.
    Returns:
        dict of [batch]: int32 `start` and `end`, and float32 `score`, the sum of both logits; at
        most -1e9 if no span is short enough.

    >>> from etcmodel.models import best_spans
    >>> best = best_spans({"start": [[0.0, 5.0, 1.0]], "end": [[9.0, 0.0, 4.0]]})
    >>> {name: x.numpy().tolist() for name, x in best.items()}
    {'start': [1], 'end': [2], 'score': [9.0]}
    """
    starts, start_places = heads.top_positions(tf.convert_to_tensor(outputs["start"]))
    ends, end_places = heads.top_positions(tf.convert_to_tensor(outputs["end"]))
    lengths = end_places[:, tf.newaxis] - start_places[:, :, tf.newaxis] + 1
    scores = starts[:, :, tf.newaxis] + ends[:, tf.newaxis]  # [batch, starts, ends]
    scores = tf.where((lengths >= 1) & (lengths <= max_length), scores, 2 * heads.MASKED_LOGIT)
    num_ends = tf.shape(ends)[1]
    best = tf.argmax(tf.reshape(scores, [tf.shape(scores)[0], -1]), -1, tf.int32)
    return {
        "start": tf.gather(start_places, best // num_ends, batch_dims=1),
        "end": tf.gather(end_places, best % num_ends, batch_dims=1),
        "score": tf.reduce_max(scores, [1, 2]),
    }
