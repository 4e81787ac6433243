"""Reads and writes a processor's folder: its vocabulary and its settings."""

import dataclasses
import os

from absl import logging

from etcmodel import atomic_files, bounded_json, file_systems, hub, shown_values
from etcmodel.text import added_tokens, byte_bpe, fairseq_pieces, tokenization, vocabulary
from etcmodel.text.processor_config import CONFIG_FILENAME, ProcessorConfig

WORD_PIECES, SENTENCE_PIECES = "vocab.txt", "spiece.model"
# Of byte-level BPE. Last, since a `tokenizer.json` may be beside a vocabulary of another kind.
BYTE_LEVEL = byte_bpe.NAMES
_NAMES = (SENTENCE_PIECES, WORD_PIECES, *BYTE_LEVEL)
VOCAB_FILE = "vocab_file"  # A folder may contain vocabularies of both kinds.
TOKENIZER_CONFIG = "tokenizer_config.json"


def save(folder, tokenizer, config):
    """Writes the vocabulary, as it was read, and the settings.

    Args:
        folder: str. Created if it does not exist.
        tokenizer: `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`.
        config: `ProcessorConfig`.
    Raises:
        OSError: if a file cannot be written.
    """
    save_with_settings(folder, tokenizer, dataclasses.asdict(config))


def save_with_settings(folder, tokenizer, settings):
    """Writes a vocabulary and any processor's settings into a folder, together.

    Args:
        folder, tokenizer: see `save` and `save_vocabulary`.
        settings: dict.
    """
    with atomic_files.scratch_folder(os.path.join(folder, CONFIG_FILENAME)) as scratch:
        name = save_vocabulary(scratch, tokenizer)
        settings = {**settings, VOCAB_FILE: name}
        atomic_files.write_json(os.path.join(scratch, CONFIG_FILENAME), settings)
        atomic_files.move_all(scratch, CONFIG_FILENAME, _stale(folder, scratch, tokenizer))


def save_vocabulary(folder, tokenizer):
    """Writes the vocabulary of a tokenizer, as it was read, into a folder.

    Args:
        folder: str. Created if it does not exist.
        tokenizer: as in `save`; or a `seq2seq_tokenizer.Seq2SeqTokenizer`.
    Returns:
        str. The file's name.
    """
    added, tokenizer = tokenizer.added, getattr(tokenizer, "own", tokenizer)
    if isinstance(tokenizer, byte_bpe.ByteLevelTokenizer):
        tokenizer.save_pretrained(folder)
        return tokenizer.file_name
    name = SENTENCE_PIECES if tokenizer.sp_model else WORD_PIECES
    content = vocabulary.file_content(tokenizer.source_file)
    with atomic_files.new_file(os.path.join(folder, name)) as temporary:
        vocabulary.write_bytes(temporary, content)
    if added:
        _write_added(folder, added, tokenizer)
    return name


def _write_added(folder, added, tokenizer):
    """Writes added tokens into the folder's files of Hugging Face's library, or into a new one."""
    entries = foreign_entries(folder) or foreign_entries(os.path.dirname(tokenizer.source_file))
    if not tokenizer.sp_model:
        entries = {**entries, "do_lower_case": tokenizer.basic_tokenizer.do_lower_case}
    entries = added_tokens.with_entries(added.tokens, entries)
    with atomic_files.new_file(os.path.join(folder, TOKENIZER_CONFIG)) as temporary:
        atomic_files.write_json(temporary, entries)
    path = os.path.join(folder, byte_bpe.TOKENIZER_FILE)
    if is_there(folder, byte_bpe.TOKENIZER_FILE):
        content = added_tokens.in_tokenizer_json(vocabulary.read_bytes(path), added.tokens)
        with atomic_files.new_file(path) as temporary:
            vocabulary.write_bytes(temporary, content)


def stale_files(folder, written, tokenizer):
    """Returns names of a folder's older files with tokens that a vocabulary does not have.

    Args:
        folder: str.
        written: names of the files that are written now.
        tokenizer: as in `save_vocabulary`; or another object.
    """
    added = getattr(tokenizer, "added", None)
    known = [] if added is None else [*added.ids, *getattr(tokenizer, "of_system", ())]
    return [] if added is None else added_tokens.stale(folder, written, known)


def _stale(folder, scratch, tokenizer):
    return stale_files(folder, file_systems.file_system(scratch).names(scratch), tokenizer)


def byte_level_file(folder):
    """Returns the path of a folder's vocabulary of byte-level BPE.

    Raises:
        ValueError: naming the folder, if there is none.
    """
    found = [name for name in BYTE_LEVEL if is_there(folder, name)]
    if not found:
        raise ValueError(f"{str(folder)!r} holds none of {', '.join(BYTE_LEVEL)}.")
    return os.path.join(folder, found[0])


def load(folder, settings):
    """Reads (tokenizer, config).

    Without `processor_config.json` the folder may be another library's: then only the vocabulary is
    read, and `do_lower_case` from `tokenizer_config.json`. Without that, too, as in a folder of the
    original BERT, text is lower-cased unless the word pieces have capitals.

    Args:
        folder: str.
        settings: dict. Settings that override those of the folder.
    Raises:
        ValueError: naming the folder or file, if there is no vocabulary or a file is damaged.
    """
    vocab_file, given = vocabulary_and_settings(folder)
    path = os.path.join(folder, CONFIG_FILENAME)
    config = ProcessorConfig.from_dict({**given, **settings}, source=path)
    return make_tokenizer(vocab_file, config), config


def vocabulary_and_settings(folder):
    """Reads a folder: (path of its vocabulary, a processor's settings as a dict).

    Raises:
        ValueError: see `load`.
    """
    atomic_files.settle(folder)
    path, is_ours = os.path.join(folder, CONFIG_FILENAME), is_there(folder, CONFIG_FILENAME)
    given = _read(path) if is_ours else {}
    names = [name for name in _NAMES if is_there(folder, name)]
    if not names:
        raise ValueError(
            f"{str(folder)!r} holds no vocabulary: none of {', '.join(_NAMES)} is there."
        )
    if not (vocab_file := named_file(folder, given)):
        vocab_file = os.path.join(folder, names[0])
        if names[0] == WORD_PIECES:
            vocabulary.check_beside(vocab_file)
    return vocab_file, given if is_ours else _foreign_settings(folder, vocab_file)


def of_folder(processor_class, folder, settings):
    """Makes a processor of a folder with its settings, or with just a vocabulary.

    See `from_pretrained` of the `processor_class`, which has a `config_class`, and whose
    `vocabulary_file` and `foreign_settings` (those in another library's files) are functions of a
    folder.
    """
    folder = hub.local_folder(os.fspath(folder), with_weights=False)
    path = os.path.join(folder, CONFIG_FILENAME)
    atomic_files.settle(folder)
    is_ours = is_there(folder, CONFIG_FILENAME)
    given = _read(path) if is_ours else processor_class.foreign_settings(folder)
    named = named_file(folder, given)
    known = {field.name for field in dataclasses.fields(processor_class.config_class)}
    if unknown := sorted(set(given) - known):
        raise ValueError(f"{path}: unknown settings of a processor: {shown_values.named(unknown)}")
    vocab = named or processor_class.vocabulary_file(folder)
    try:
        return processor_class(vocab, **{**given, **settings})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def has_vocabulary(folder):
    """Returns whether a folder, local or in a bucket, has a known vocabulary file: bool."""
    return any(is_there(folder, name) for name in _NAMES)


def named_file(folder, settings):
    """Returns the path of the vocabulary that a folder's settings name, and removes its name there.

    Args:
        folder: str.
        settings: dict, as it was read; modified.
    Returns:
        str; None if they name none.
    Raises:
        ValueError: naming the settings' file, if that vocabulary does not exist.
    """
    name = settings.pop(VOCAB_FILE, None)
    if name is None:
        return None
    if name not in (names := [x for x in _NAMES if is_there(folder, x)]):
        path = os.path.join(folder, CONFIG_FILENAME)
        shown = shown_values.shown(name)
        raise ValueError(f"{path}: `{VOCAB_FILE}` is {shown}, but the folder has {names}.")
    return os.path.join(folder, name)


def make_tokenizer(vocab_file, config):
    """Creates the tokenizer of a vocabulary, by the file's name.

    Args:
        vocab_file: str. Of byte-level BPE if it is a `tokenizer.json` without word pieces, or a
            `vocab.json` with `merges.txt` beside it, or a `sentencepiece.bpe.model`, which
            fairseq numbers; of sentence pieces if it ends in `.model`; else of word pieces.
        config: `ProcessorConfig`.
    Returns:
        `byte_bpe.ByteLevelTokenizer`, or `tokenization.FullTokenizer`.
    Raises:
        ValueError: naming the file, if it is damaged or has a token twice.
    """
    if is_byte_level(vocab_file):
        return byte_bpe.ByteLevelTokenizer.of_file(str(vocab_file))
    if str(vocab_file).endswith(".model"):
        return tokenization.FullTokenizer(
            None, spm_model_file=vocab_file, split_punctuation=config.split_punctuation
        )
    vocabulary.check_no_token_twice(vocab_file)
    return tokenization.FullTokenizer(
        vocab_file, config.do_lower_case, split_punctuation=config.split_punctuation
    )


def is_byte_level(vocab_file):
    """Returns whether a vocabulary, by its name, is for `ByteLevelTokenizer`: bool."""
    is_named_so = os.path.basename(str(vocab_file)) in BYTE_LEVEL
    return is_named_so and not vocabulary.has_word_pieces(vocab_file)


def vocabulary_files(vocab_file, spm_model_file=None):
    """Returns all files of a vocabulary, by their names in a model's folder.

    Args:
        vocab_file: str or None. See `make_tokenizer`.
        spm_model_file: str or None. A SentencePiece model, which takes precedence.
    Returns:
        dict of name to path, or to bytes if the file is made; the first is the one for
        `make_tokenizer`.
    """
    if spm_model_file:
        return {SENTENCE_PIECES: spm_model_file, **_added_files(spm_model_file)}
    name = os.path.basename(str(vocab_file))
    if not is_byte_level(vocab_file):
        name = name if vocabulary.has_word_pieces(vocab_file) else WORD_PIECES
        return {name: vocab_file, **_added_files(vocab_file)}
    if fairseq_pieces.is_of(vocab_file):
        return {**byte_bpe.contents(vocab_file), **_added_files(vocab_file)}
    files = {name: vocab_file, **_added_files(vocab_file)}
    if name == byte_bpe.VOCAB_FILE:
        folder = os.path.dirname(str(vocab_file))
        files[byte_bpe.MERGES_FILE] = os.path.join(folder, byte_bpe.MERGES_FILE)
        for beside in (TOKENIZER_CONFIG, byte_bpe.SPECIAL_FILE):
            if is_there(folder, beside):
                files[beside] = os.path.join(folder, beside)
    return files


def _added_files(vocab_file):
    """The files beside a vocabulary that list tokens added to it, by name."""
    if not added_tokens.beside(vocab_file):
        return {}
    folder = os.path.dirname(str(vocab_file))
    return {x: os.path.join(folder, x) for x in added_tokens.FILES if is_there(folder, x)}


def settings_of(tokenizer):
    """Returns the processor settings that a tokenizer was created with: dict."""
    if isinstance(tokenizer, byte_bpe.ByteLevelTokenizer):
        return {"do_lower_case": False, "split_punctuation": False}
    lower = tokenizer.basic_tokenizer.do_lower_case or bool(tokenizer.sp_model)
    return {"do_lower_case": lower, "split_punctuation": tokenizer.split_punctuation}


def _foreign_settings(folder, vocab_file):
    # The second is not one of Hugging Face's.
    split = foreign_entries(folder).get("split_punctuation", False)
    split = _checked_flag(folder, "split_punctuation", split)
    return {**foreign_case(folder, vocab_file), "split_punctuation": split}


def foreign_case(folder, vocab_file):
    """Reads whether text is lower-cased with another library's vocabulary, as a setting: dict.

    `tokenizer_config.json` tells it; else a `tokenizer.json` of word pieces. Else it is, unless the
    folder has neither, as that of the original BERT, and the word pieces have capitals.

    Args:
        folder: str.
        vocab_file: str. Its vocabulary, of any kind.
    Raises:
        ValueError: naming the file and the entry, if it is damaged or text is not as in BERT.
    """
    entries, beside = foreign_entries(folder), os.path.join(folder, byte_bpe.TOKENIZER_FILE)
    is_of_words = not (str(vocab_file).endswith(".model") or is_byte_level(vocab_file))
    is_lower = None
    if is_of_words and vocabulary.has_word_pieces(beside):  # Checks that it is as in BERT, too.
        is_lower = vocabulary.word_piece_settings(beside)
    if "do_lower_case" in entries:
        is_lower = _checked_flag(folder, "do_lower_case", entries["do_lower_case"])
    elif is_lower is None:
        is_known = is_there(folder, TOKENIZER_CONFIG) or not is_of_words
        is_lower = is_known or _usual_case(folder, vocab_file)
    if is_of_words:
        _check_as_bert(os.path.join(folder, TOKENIZER_CONFIG), entries, is_lower)
    return {"do_lower_case": is_lower}


def _checked_flag(folder, name, value):
    if not isinstance(value, bool):
        raise ValueError(
            f"{os.path.join(folder, TOKENIZER_CONFIG)}: `{name}` must be true or false. Received: "
            f"{shown_values.shown(value)}"
        )
    return value


def _usual_case(folder, vocab_file):
    """Whether text is lower-cased in a folder whose files do not set it: bool."""
    is_of_lines = os.path.basename(vocab_file) == WORD_PIECES
    is_lower = not (is_of_lines and vocabulary.is_cased(vocab_file))
    told = "is lower-cased" if is_lower else "is not lower-cased: the vocabulary has capitals"
    logging.info("%s has no %s: text %s.", folder, TOKENIZER_CONFIG, told)
    return is_lower


def _check_as_bert(path, entries, is_lower):
    """Checks that another library's settings of word pieces are as in BERT.

    Accents are kept in cased text and removed from lower-cased one; ideographs are set apart.
    """
    wanted = {"strip_accents": (None, is_lower), "tokenize_chinese_chars": (None, True)}
    for name, values in wanted.items():
        if (value := entries.get(name)) not in values:
            raise ValueError(
                f"{path}: with do_lower_case={is_lower}, `{name}` must be {values[1]}, as in BERT. "
                f"Received: {shown_values.shown(value)}"
            )


def foreign_entries(folder):
    """Reads another library's `tokenizer_config.json`: dict, empty without that file.

    Raises:
        ValueError: naming the file, if it is damaged.
    """
    if not is_there(folder, TOKENIZER_CONFIG):
        return {}
    return _read(os.path.join(folder, TOKENIZER_CONFIG))


def _read(path):
    return bounded_json.load_object(vocabulary.read_bytes(path), path)


def is_there(folder, name):
    """Returns whether a folder, local or in a bucket, has a file of this name."""
    return vocabulary.exists(os.path.join(folder, name))
