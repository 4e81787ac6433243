"""Extended Transformer Construction (ETC) for TensorFlow 2: long and structured inputs.

`etcmodel.EtcConfig`, `etcmodel.EtcModel`, `etcmodel.from_pretrained` … are imported at first use,
so that programs that only prepare data do not wait for TensorFlow.
"""

import sys

from etcmodel import lazy_imports, moved_modules, onednn, program_end, quiet

_HEADS = (
    "EtcForKeyphraseExtraction",
    "EtcForMaskedLM",
    "EtcForMultipleChoice",
    "EtcForQuestionAnswering",
    "EtcForSentenceSelection",
    "EtcForSequenceClassification",
    "EtcForTokenClassification",
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
_LED = (
    "LedConfig",
    "LedForConditionalGeneration",
    "LedForQuestionAnswering",
    "LedModel",
)
_LOADERS = ("from_pretrained", "load_pretrained", "save_pretrained")
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
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertModel",
)
_PEGASUS_X = ("PegasusXConfig", "PegasusXForConditionalGeneration", "PegasusXModel")
_HOMES = {
    "EtcConfig": "etcmodel.models.modeling",
    "EtcModel": "etcmodel.models.modeling",
    "EtcProcessor": "etcmodel.text.processor",
    "GmatProcessor": "etcmodel.text.gmat_processor",
    "GmatSeq2SeqProcessor": "etcmodel.text.gmat_seq2seq_processor",
    "BigBirdProcessor": "etcmodel.text.bigbird_processor",
    **dict.fromkeys(_BIGBIRD, "etcmodel.models.bigbird"),
    **dict.fromkeys(_BIGBIRD_PEGASUS, "etcmodel.models.bigbird_pegasus"),
    **dict.fromkeys(_GMAT, "etcmodel.models.gmat"),
    **dict.fromkeys(_PEGASUS_X, "etcmodel.models.pegasus_x"),
    **dict.fromkeys(_LONGT5, "etcmodel.models.longt5"),
    **dict.fromkeys(_LED, "etcmodel.models.led"),
    "Seq2SeqProcessor": "etcmodel.text.seq2seq_processor",
    "TextEncoder": "etcmodel.checkpoints.text_encoder",
    "LongformerProcessor": "etcmodel.text.longformer_processor",
    "ModernBertProcessor": "etcmodel.text.modernbert_processor",
    **dict.fromkeys(_LONGFORMER, "etcmodel.models.longformer"),
    **dict.fromkeys(_CHAR_LM, "etcmodel.models.longformer_char_lm"),
    **dict.fromkeys(_MODERNBERT, "etcmodel.models.modernbert"),
    **dict.fromkeys(_HEADS, "etcmodel.models.heads"),
    **dict.fromkeys(_LOADERS, "etcmodel.checkpoints"),
}

__all__ = [*_HOMES]  # noqa: PLE0604
__version__ = "0.1.0"
# Not among the names above: it needs Keras 3, which `import *` does not.
__getattr__ = lazy_imports.attributes(__name__, {**_HOMES, "keras3": "keras3"})

moved_modules.install()
onednn.prefer()
if sys.argv[:1] == ["-m"] and any(arg.startswith(__name__) for arg in sys.orig_argv):
    # One of this package's programs is being started.
    program_end.end_at_once_on_signals()
    quiet.quiet_tensorflow()
else:
    quiet.quiet_tensorflow(is_program=False)
