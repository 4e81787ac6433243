"""Saves a pre-trained model as a folder that fine-tuning can start from."""

import json

from etcmodel import checkpoints
from etcmodel.checkpoints import processors
from etcmodel.models.heads.language_model import EtcForMaskedLM
from etcmodel.text import processor_files, vocabulary
from etcmodel.text.byte_bpe import ByteLevelTokenizer

from . import text_model
from .model import PretrainModel

__all__ = ["save"]


def save(model, directory, tokenizer=None, *, do_lower_case=True, copy_local_to_global=True):
    """Writes a pre-trained model with `checkpoints.save_pretrained`, including its vocabulary.

    Args:
        model: `PretrainModel`, or one of `text_model`.
        directory: str.
        tokenizer: tokenizer with the vocabulary, or None.
        do_lower_case: bool. Whether the text was lower-cased; WordPiece only.
        copy_local_to_global: bool. See `checkpoints.copy_local_to_global`; only for Longformer.
    """
    if isinstance(model, PretrainModel):
        masked_lm = EtcForMaskedLM(model.etc_model)
        masked_lm.language_model.set_weights(model.mlm_head.get_weights())
    else:
        masked_lm = text_model.plain(model)
    if copy_local_to_global and masked_lm.encoder.config.model_type == "longformer":
        checkpoints.copy_local_to_global(masked_lm)
    checkpoints.save_pretrained(masked_lm, directory, _files_of(tokenizer, do_lower_case))


def _files_of(tokenizer, do_lower_case):
    """The writer of the vocabulary's files and tokenizer settings, or None."""
    if tokenizer is None or isinstance(tokenizer, ByteLevelTokenizer):
        return tokenizer
    name = processor_files.SENTENCE_PIECES if tokenizer.sp_model else processor_files.WORD_PIECES
    settings = {
        "do_lower_case": do_lower_case or bool(tokenizer.sp_model),
        "split_punctuation": tokenizer.split_punctuation,
    }
    return processors.VocabularyFiles(
        {
            name: vocabulary.file_content(tokenizer.source_file),
            processor_files.TOKENIZER_CONFIG: json.dumps(settings).encode(),
        }
    )
