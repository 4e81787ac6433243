"""Reads the vocabulary and the processor in a model's folder."""

import dataclasses
import math
import os
from collections.abc import Mapping

import tensorflow as tf
from absl import logging

from etcmodel import bounded_json
from etcmodel.models import systems, text_data
from etcmodel.text import fairseq_pieces, processor_files
from etcmodel.text.processor import EtcProcessor
from etcmodel.text.processor_config import CONFIG_FILENAME as PROCESSOR_FILE

__all__ = [
    "PROCESSOR_FILE",
    "VocabularyFiles",
    "check_processor",
    "content",
    "files_of_vocabulary",
    "older_names",
    "read_processor",
    "trained_settings",
    "vocabulary_files",
]

_ADVICE = " Set `model.processor` to a processor."
_NAMES = (
    processor_files.WORD_PIECES,
    processor_files.SENTENCE_PIECES,
    "vocab.json",
    "merges.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
    fairseq_pieces.FILE_NAME,
)


@dataclasses.dataclass(frozen=True)
class VocabularyFiles:
    """Vocabulary files from which no processor can be made; they are copied unchanged.

    Attributes:
        files: dict of name to bytes.
        reason: str. Why there is no processor, and what to do.
    """

    files: Mapping[str, bytes]
    reason: str = ""

    def __call__(self, *args, **kwargs):
        raise ValueError(f"The model has no processor: {self.reason}")

    def save_pretrained(self, directory):
        """Writes the files to a directory."""
        for name, content in self.files.items():
            with tf.io.gfile.GFile(os.path.join(directory, name), "wb") as file:
                file.write(content)


def read_processor(directory, config, relation_names=None):
    """Reads a model folder's processor, or makes one from the vocabulary.

    Args:
        directory: str.
        config: `EncoderConfig`. A processor made from a vocabulary alone truncates inputs longer
            than the model's tables of positions. It gives tokens the segment and global tokens the
            id that the authors' checkpoints were trained with (`default_segment_id`,
            `global_token_id`), unless the segment is 0, as in BERT.
        relation_names: sequence of str, instead of those of the folder; None for these.
    Returns:
        `EtcProcessor`, also for any model whose settings are one's; for Longformer and LED a
        `LongformerProcessor`, which, made from a vocabulary alone, leaves global tokens to the
        model; for BigBird a `BigBirdProcessor`, for ModernBERT a `ModernBertProcessor`; for GMAT a
        `GmatProcessor`, for GenBERT over one a `GmatSeq2SeqProcessor`; for LongT5, PEGASUS-X and
        BigBird-Pegasus a `Seq2SeqProcessor`; `VocabularyFiles` if the folder has neither a
        processor's settings nor a usable vocabulary; None if it has no vocabulary.
    Raises:
        ValueError: naming the file, if the settings of a processor are damaged.
    """
    settings = {} if relation_names is None else {"relation_names": tuple(relation_names)}
    if tf.io.gfile.exists(os.path.join(directory, PROCESSOR_FILE)):
        return _of_settings(directory, config, settings)
    if not (files := vocabulary_files(directory)):
        return None
    try:
        if (made_by := _class_of(config)) is not None:
            tokens = systems.find(config.model_type).own_tokens
            own = {"own_tokens": tokens} if tokens else {}
            return made_by.of_model(directory, config, **own)
        return EtcProcessor.from_pretrained(directory, **settings, **trained_settings(config))
    except (ValueError, OSError) as error:
        logging.info("The files of the vocabulary are kept, but make no processor: %s", error)
        return VocabularyFiles(files, str(error) + _ADVICE)


def vocabulary_files(directory):
    """Reads a folder's vocabulary, and the settings beside it: dict of file name to bytes."""
    names = (*_NAMES, PROCESSOR_FILE)
    files = {name: content(os.path.join(directory, name)) for name in names}
    return {name: found for name, found in files.items() if found is not None}


def files_of_vocabulary(vocab_file, *, has_pieces=False):
    """Reads a vocabulary of any kind, by the names of its files in a model's folder: dict to bytes.

    Args:
        vocab_file: path.
        has_pieces: bool. Whether it is a SentencePiece model in any case, not by its name alone.
    Raises:
        ValueError: naming the file, if it is not there.
    """
    if not tf.io.gfile.exists(vocab_file := os.fspath(vocab_file)):
        raise ValueError(f"There is no vocabulary {vocab_file!r}.")
    if vocab_file.endswith(".model") and not processor_files.is_byte_level(vocab_file):
        has_pieces = True
    given = (None, vocab_file) if has_pieces else (vocab_file,)
    files = processor_files.vocabulary_files(*given)
    read = {x: y if isinstance(y, bytes) else content(y) for x, y in files.items()}
    return {name: found for name, found in read.items() if found is not None}


def older_names(directory, written, processor):
    """Finds files of an older processor that would be read instead of the new ones, or with them.

    Args:
        directory: str.
        written: collection of str. Names of the new processor's files.
        processor: the new one.
    Returns:
        tuple of str. Settings name their vocabulary; without settings any existing one is used.
    """
    if PROCESSOR_FILE in written:
        tokenizer = getattr(processor, "tokenizer", None)
        return tuple(processor_files.stale_files(directory, written, tokenizer))
    return (PROCESSOR_FILE, *_NAMES) if set(_NAMES) & set(written) else ()


def trained_settings(config):
    """Returns the processor settings for batches like those the model was trained with: dict.

    Args:
        config: `EncoderConfig`.
    """
    settings = {}
    if limit := getattr(config, "max_absolute_position_embeddings", 0):
        settings |= {"max_long_len": limit, "max_global_len": limit}
    segment_id = getattr(config, "default_segment_id", None)
    if segment_id != 0 and hasattr(config, "global_token_id"):
        settings["global_token_id"] = config.global_token_id
    if segment_id or getattr(config, "segment_vocab_size", 2) < 2:  # RoBERTa has no segments.
        settings["segment_id"] = segment_id or 0
    of_roberta = {"pad_token_id": 1, "global_token_id": 0}
    if segment_id == 0 and all(getattr(config, x, None) == y for x, y in of_roberta.items()):
        settings["question_separators"] = 2
    return settings


def _of_settings(directory, config, settings):
    """The processor whose settings a folder has."""
    entries = bounded_json.read_object(os.path.join(directory, PROCESSOR_FILE))
    # Models of one text may have an `EtcProcessor`, too: its batches have their features.
    made_by = _class_of(config)
    if made_by is None or "max_long_len" in entries:
        return EtcProcessor.from_pretrained(directory, **settings)
    return made_by.from_pretrained(directory)


def _class_of(config):
    """The class of a system's processor; None for `EtcProcessor`, also for unknown systems."""
    system = systems.find(config.model_type)
    return system and system.processor


def content(path):
    """Returns the bytes of a file, None without it; raises ValueError for a folder."""
    if not tf.io.gfile.exists(path):
        return None
    if tf.io.gfile.isdir(path):
        raise ValueError(f"{path} is a folder, and must be a file.")
    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()


def check_processor(model, processor):
    """Checks that a processor's batches, if there is one, fit a model.

    Args:
        model: `Encoder`, or `HeadModel`.
        processor: any object; missing attributes (`relation_names`, `vocab_size`) are not checked.
    Raises:
        ValueError: giving both sides, if they name different relations, the processor relates
            tokens beyond the model's reach, or it has more tokens than the model.
    """
    ours = getattr(model, "relation_names", None)
    theirs = getattr(processor, "relation_names", None)
    if ours is not None and theirs is not None and tuple(ours) != tuple(theirs):
        raise ValueError(
            f"The model's `relation_names` are {list(ours)}, the processor's {list(theirs)}; they "
            "must be the same"
        )
    settings = getattr(processor, "config", None)
    radius = getattr(getattr(model, "encoder", model).config, "local_radius", None)
    if getattr(settings, "long_relation_names", ()) and settings.long_radius > (radius or math.inf):
        raise ValueError(
            f"The processor's `long_radius`, {settings.long_radius}, must be at most the model's "
            f"`local_radius`, {radius}"
        )
    text_data.check_vocabulary(model, processor)
