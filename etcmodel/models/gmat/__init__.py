"""GMAT (Gupta and Berant 2020, arXiv:2006.03274): chunks that meet in a memory.

The names here are imported at first use.
"""

from etcmodel import lazy_imports

_HEADS = (
    "GmatForMaskedLM",
    "GmatForMultipleChoice",
    "GmatForQuestionAnswering",
    "GmatForSequenceClassification",
    "GmatForTokenClassification",
)
_HOMES = {
    **dict.fromkeys(_HEADS, "etcmodel.models.gmat.heads"),
    "GmatConfig": "etcmodel.models.gmat.config",
    "GmatForConditionalGeneration": "etcmodel.models.gmat.encoder_decoder",
    "GmatSeq2SeqConfig": "etcmodel.models.gmat.encoder_decoder",
    "GmatModel": "etcmodel.models.gmat.modeling",
}

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
