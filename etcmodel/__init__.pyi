"""The names of the package, for type checkers: `__init__.py` imports them at first use."""

import os
from typing import Any, TypeVar, overload

from etcmodel import keras3 as keras3
from etcmodel.checkpoints.text_encoder import TextEncoder as TextEncoder
from etcmodel.models.bigbird import (
    BigBirdConfig,
    BigBirdForMaskedLM,
    BigBirdForMultipleChoice,
    BigBirdForPreTraining,
    BigBirdForQuestionAnswering,
    BigBirdForSequenceClassification,
    BigBirdForTokenClassification,
    BigBirdModel,
)
from etcmodel.models.bigbird_pegasus import (
    BigBirdPegasusConfig,
    BigBirdPegasusForConditionalGeneration,
    BigBirdPegasusForQuestionAnswering,
    BigBirdPegasusForSequenceClassification,
    BigBirdPegasusModel,
)
from etcmodel.models.gmat import (
    GmatConfig,
    GmatForConditionalGeneration,
    GmatForMaskedLM,
    GmatForMultipleChoice,
    GmatForQuestionAnswering,
    GmatForSequenceClassification,
    GmatForTokenClassification,
    GmatModel,
    GmatSeq2SeqConfig,
)
from etcmodel.models.heads import (
    EtcForKeyphraseExtraction,
    EtcForMaskedLM,
    EtcForMultipleChoice,
    EtcForQuestionAnswering,
    EtcForSentenceSelection,
    EtcForSequenceClassification,
    EtcForTokenClassification,
)
from etcmodel.models.led import (
    LedConfig,
    LedForConditionalGeneration,
    LedForQuestionAnswering,
    LedModel,
)
from etcmodel.models.longformer import (
    LongformerConfig,
    LongformerForMaskedLM,
    LongformerForMultipleChoice,
    LongformerForQuestionAnswering,
    LongformerForSequenceClassification,
    LongformerForTokenClassification,
    LongformerModel,
)
from etcmodel.models.longformer_char_lm import CharLmConfig, CharLmModel
from etcmodel.models.longt5 import (
    LongT5Config,
    LongT5EncoderModel,
    LongT5ForSequenceClassification,
    LongT5ForTokenClassification,
    LongT5Model,
)
from etcmodel.models.modeling import EtcConfig, EtcModel
from etcmodel.models.modernbert import (
    EtcModernBertConfig,
    EtcModernBertModel,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertForMultipleChoice,
    ModernBertForQuestionAnswering,
    ModernBertForSequenceClassification,
    ModernBertForTokenClassification,
    ModernBertModel,
)
from etcmodel.models.pegasus_x import (
    PegasusXConfig,
    PegasusXForConditionalGeneration,
    PegasusXModel,
)
from etcmodel.text.bigbird_processor import BigBirdProcessor
from etcmodel.text.gmat_processor import GmatProcessor
from etcmodel.text.gmat_seq2seq_processor import GmatSeq2SeqProcessor
from etcmodel.text.longformer_processor import LongformerProcessor
from etcmodel.text.modernbert_processor import ModernBertProcessor
from etcmodel.text.processor import EtcProcessor
from etcmodel.text.seq2seq_processor import Seq2SeqProcessor

__all__ = [
    "BigBirdConfig",
    "BigBirdForMaskedLM",
    "BigBirdForMultipleChoice",
    "BigBirdForPreTraining",
    "BigBirdForQuestionAnswering",
    "BigBirdForSequenceClassification",
    "BigBirdForTokenClassification",
    "BigBirdModel",
    "BigBirdPegasusConfig",
    "BigBirdPegasusForConditionalGeneration",
    "BigBirdPegasusForQuestionAnswering",
    "BigBirdPegasusForSequenceClassification",
    "BigBirdPegasusModel",
    "BigBirdProcessor",
    "CharLmConfig",
    "CharLmModel",
    "EtcConfig",
    "EtcForKeyphraseExtraction",
    "EtcForMaskedLM",
    "EtcForMultipleChoice",
    "EtcForQuestionAnswering",
    "EtcForSentenceSelection",
    "EtcForSequenceClassification",
    "EtcForTokenClassification",
    "EtcModel",
    "EtcModernBertConfig",
    "EtcModernBertModel",
    "EtcProcessor",
    "GmatConfig",
    "GmatForConditionalGeneration",
    "GmatForMaskedLM",
    "GmatForMultipleChoice",
    "GmatForQuestionAnswering",
    "GmatForSequenceClassification",
    "GmatForTokenClassification",
    "GmatModel",
    "GmatProcessor",
    "GmatSeq2SeqConfig",
    "GmatSeq2SeqProcessor",
    "LedConfig",
    "LedForConditionalGeneration",
    "LedForQuestionAnswering",
    "LedModel",
    "LongT5Config",
    "LongT5EncoderModel",
    "LongT5ForSequenceClassification",
    "LongT5ForTokenClassification",
    "LongT5Model",
    "LongformerConfig",
    "LongformerForMaskedLM",
    "LongformerForMultipleChoice",
    "LongformerForQuestionAnswering",
    "LongformerForSequenceClassification",
    "LongformerForTokenClassification",
    "LongformerModel",
    "LongformerProcessor",
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertModel",
    "ModernBertProcessor",
    "PegasusXConfig",
    "PegasusXForConditionalGeneration",
    "PegasusXModel",
    "Seq2SeqProcessor",
    "TextEncoder",
    "from_pretrained",
    "load_pretrained",
    "save_pretrained",
]

_Model = TypeVar("_Model")

__version__: str

@overload
def from_pretrained(
    directory: str | os.PathLike[str],
    checkpoint_name: str | None = None,
    *,
    as_class: type[_Model],
    revision: str | None = None,
    **overrides: Any,
) -> _Model: ...
@overload
def from_pretrained(
    directory: str | os.PathLike[str],
    checkpoint_name: str | None = None,
    *,
    as_class: None = None,
    revision: str | None = None,
    **overrides: Any,
) -> Any: ...

load_pretrained = from_pretrained

def save_pretrained(
    model: Any, directory: str | os.PathLike[str], processor: Any = None
) -> None: ...
