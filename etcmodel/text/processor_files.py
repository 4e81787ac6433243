"""A processor's folder: its vocabulary and its settings."""

import dataclasses
import os

from absl import logging

from etcmodel import atomic_files, bounded_json, file_systems
from etcmodel.text import tokenization, vocabulary
from etcmodel.text.processor_config import CONFIG_FILENAME, ProcessorConfig

__all__ = ["SENTENCE_PIECES", "WORD_PIECES", "load", "make_tokenizer", "save"]

WORD_PIECES, SENTENCE_PIECES = "vocab.txt", "spiece.model"
_VOCAB_FILE = "vocab_file"  # A folder may hold vocabularies of both kinds.
_TOKENIZER_CONFIG = "tokenizer_config.json"


def save(folder, tokenizer, config):
    """Writes the vocabulary, as it was read, and then the settings.

    Args:
        folder: str. It is made if it is not there.
        tokenizer: `tokenization.FullTokenizer`.
        config: `ProcessorConfig`.
    Raises:
        OSError: if a file cannot be written.
    """
    name = SENTENCE_PIECES if tokenizer.sp_model else WORD_PIECES
    content = vocabulary.read_bytes(tokenizer.source_file)
    with atomic_files.new_file(os.path.join(folder, name)) as temporary:
        vocabulary.write_bytes(temporary, content)
    settings = {**dataclasses.asdict(config), _VOCAB_FILE: name}
    atomic_files.write_json(os.path.join(folder, CONFIG_FILENAME), settings)


def load(folder, settings):
    """Reads (tokenizer, config).

    Without `processor_config.json` the folder may be another library's: then only the vocabulary is
    read, and `do_lower_case` of `tokenizer_config.json`, if that is there.

    Args:
        folder: str.
        settings: dict. Settings that replace those of the folder.
    Raises:
        ValueError: naming the folder or file, if there is no vocabulary or a file is damaged.
    """
    path = os.path.join(folder, CONFIG_FILENAME)
    given = _read(path) if _is_there(folder, CONFIG_FILENAME) else _foreign_settings(folder)
    names = [name for name in (SENTENCE_PIECES, WORD_PIECES) if _is_there(folder, name)]
    if not names:
        raise ValueError(
            f"{str(folder)!r} holds no vocabulary: neither {WORD_PIECES} nor {SENTENCE_PIECES}."
        )
    name = given.pop(_VOCAB_FILE, names[0])
    if name not in names:
        raise ValueError(f"{path}: `{_VOCAB_FILE}` is {name!r}, but the folder has {names}.")
    config = ProcessorConfig.from_dict({**given, **settings}, source=path)
    return make_tokenizer(os.path.join(folder, name), config), config


def make_tokenizer(vocab_file, config):
    """`tokenization.FullTokenizer` of a vocabulary: sentence pieces if its name ends in .model."""
    if str(vocab_file).endswith(".model"):
        return tokenization.FullTokenizer(
            None, spm_model_file=vocab_file, split_punctuation=config.split_punctuation
        )
    return tokenization.FullTokenizer(
        vocab_file, config.do_lower_case, split_punctuation=config.split_punctuation
    )


def _foreign_settings(folder):
    if not _is_there(folder, _TOKENIZER_CONFIG):
        logging.info("%s has no %s: text is lower-cased.", folder, _TOKENIZER_CONFIG)
        return {}
    path = os.path.join(folder, _TOKENIZER_CONFIG)
    value = _read(path).get("do_lower_case", True)
    if not isinstance(value, bool):
        raise ValueError(f"{path}: `do_lower_case` must be true or false. Received: {value!r}")
    return {"do_lower_case": value}


def _read(path):
    return bounded_json.load_object(vocabulary.read_bytes(path), path)


def _is_there(folder, name):
    path = os.path.join(folder, name)
    if "://" in str(path):
        return file_systems.gfile().exists(path)
    return os.path.exists(path)
