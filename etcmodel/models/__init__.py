"""The ETC model, its inputs, and models with heads.

Each name is imported at its first use.
"""

from etcmodel import lazy_imports

_HEADS = (
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
)
_BIGBIRD = (
    "BigBirdConfig",
    "BigBirdForMaskedLM",
    "BigBirdForMultipleChoice",
    "BigBirdForPreTraining",
    "BigBirdForQuestionAnswering",
    "BigBirdForSequenceClassification",
    "BigBirdForTokenClassification",
    "BigBirdModel",
)
_BIGBIRD_PEGASUS = (
    "BigBirdPegasusConfig",
    "BigBirdPegasusForConditionalGeneration",
    "BigBirdPegasusForQuestionAnswering",
    "BigBirdPegasusForSequenceClassification",
    "BigBirdPegasusModel",
)
_GMAT = (
    "GmatConfig",
    "GmatForConditionalGeneration",
    "GmatForMaskedLM",
    "GmatForMultipleChoice",
    "GmatForQuestionAnswering",
    "GmatForSequenceClassification",
    "GmatForTokenClassification",
    "GmatModel",
    "GmatSeq2SeqConfig",
)
_CHAR_LM = ("CharLmConfig", "CharLmModel")
_LED = ("LedConfig", "LedForConditionalGeneration", "LedForQuestionAnswering", "LedModel")
_LONGFORMER = (
    "LongformerConfig",
    "LongformerForMaskedLM",
    "LongformerForMultipleChoice",
    "LongformerForQuestionAnswering",
    "LongformerForSequenceClassification",
    "LongformerForTokenClassification",
    "LongformerModel",
)
_LONGT5 = (
    "LongT5Config",
    "LongT5EncoderModel",
    "LongT5ForSequenceClassification",
    "LongT5ForTokenClassification",
    "LongT5Model",
)
_MODERNBERT = (
    "EtcModernBertConfig",
    "EtcModernBertModel",
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertModel",
)
_PEGASUS_X = ("PegasusXConfig", "PegasusXForConditionalGeneration", "PegasusXModel")
HOMES = {
    **dict.fromkeys(_HEADS, "etcmodel.models.heads"),
    **dict.fromkeys(("EtcConfig", "EtcModel"), "etcmodel.models.modeling"),
    **dict.fromkeys(_BIGBIRD, "etcmodel.models.bigbird"),
    **dict.fromkeys(_BIGBIRD_PEGASUS, "etcmodel.models.bigbird_pegasus"),
    **dict.fromkeys(_GMAT, "etcmodel.models.gmat"),
    **dict.fromkeys(_PEGASUS_X, "etcmodel.models.pegasus_x"),
    **dict.fromkeys(_LED, "etcmodel.models.led"),
    **dict.fromkeys(_LONGFORMER, "etcmodel.models.longformer"),
    **dict.fromkeys(_LONGT5, "etcmodel.models.longt5"),
    **dict.fromkeys(_CHAR_LM, "etcmodel.models.longformer_char_lm"),
    **dict.fromkeys(_MODERNBERT, "etcmodel.models.modernbert"),
    **dict.fromkeys(("embed", "pool"), "etcmodel.models.pooling"),
}

__all__ = [*HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, HOMES)
