"""Keras models for common tasks, over any encoder of a long and a global input."""

from etcmodel.models.heads.base import (
    EncoderWithHead,
    HeadModel,
    head_class,
    head_classes,
    register_head,
)
from etcmodel.models.heads.of_etc import (
    ANSWER_TYPES,
    EtcForKeyphraseExtraction,
    EtcForMaskedLM,
    EtcForMultipleChoice,
    EtcForQuestionAnswering,
    EtcForSentenceSelection,
    EtcForSequenceClassification,
    EtcForTokenClassification,
    best_phrases,
    best_spans,
)

__all__ = [
    "ANSWER_TYPES",
    "EncoderWithHead",
    "EtcForKeyphraseExtraction",
    "EtcForMaskedLM",
    "EtcForMultipleChoice",
    "EtcForQuestionAnswering",
    "EtcForSentenceSelection",
    "EtcForSequenceClassification",
    "EtcForTokenClassification",
    "HeadModel",
    "best_phrases",
    "best_spans",
    "head_class",
    "head_classes",
    "register_head",
]
