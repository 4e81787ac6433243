"""Keras models for common tasks, over any encoder of a long and a global input."""

from etcmodel.models.heads.base import (
    EncoderWithHead,
    HeadModel,
    head_class,
    head_classes,
    register_head,
)
from etcmodel.models.heads.classification import (
    EtcForSequenceClassification,
    EtcForTokenClassification,
)
from etcmodel.models.heads.keyphrases import EtcForKeyphraseExtraction, best_phrases
from etcmodel.models.heads.language_model import EtcForMaskedLM
from etcmodel.models.heads.question_answering import (
    ANSWER_TYPES,
    EtcForQuestionAnswering,
    best_spans,
)
from etcmodel.models.heads.selection import EtcForMultipleChoice, EtcForSentenceSelection

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
