"""Converts checkpoints between formats, BERT's into ETC's, and the rows of vocabularies."""

import os

import numpy as np

from etcmodel import bounded_json
from etcmodel.checkpoints import (
    bert,
    coverage,
    lifting,
    lifting_modernbert,
    processors,
    sources,
    strict,
    writing,
)
from etcmodel.checkpoints import names as names_lib
from etcmodel.checkpoints.coverage import LoadReport
from etcmodel.models import encoders
from etcmodel.text import byte_letters
from etcmodel.text import vocabulary as vocabulary_lib

# Maps the rows of one vocabulary's embedding table to those of another's.


_SPECIAL = (
    ("[PAD]", "<pad>"),
    ("[UNK]", "<unk>"),
    ("[CLS]", "<s>"),
    ("[SEP]", "</s>"),
    ("[MASK]", "<mask>"),
)
_WORD_START = vocabulary_lib.SPIECE_UNDERLINE


def token_rows(source_vocab, target_vocab):
    """Finds the id of each piece of a vocabulary in another vocabulary.

    Pieces are compared by their text and by whether they begin a word, however that is encoded:
    "##" before pieces inside words (WordPiece, `.txt`), "▁" before words (SentencePiece, `.model`)
    or "Ġ" before words and bytes as letters (RoBERTa's `vocab.json`). If [CLS] is missing, <s> is
    used, and so on. Letters for bytes that occur in no text, as in the SentencePiece models made
    from RoBERTa's vocabulary, are compared as they are written.

    Args:
        source_vocab: path of the vocabulary of the weights.
        target_vocab: path of the model's vocabulary.
    Returns:
        int64 [target size]. Ids in the source's vocabulary; -1 where it lacks the piece.
    Raises:
        ValueError: if a file is not such a vocabulary, or no piece is in both.

    >>> from etcmodel import checkpoints
    >>> checkpoints.token_rows("my_bert/vocab.txt", "vocab.txt")[:4]
    array([0, 1, 2, 3])
    """
    source = _ids_by_piece(str(source_vocab))
    rows = np.array([source.get(piece, -1) for piece in _pieces(str(target_vocab))], np.int64)
    if (rows < 0).all():
        raise ValueError(f"{str(source_vocab)!r} and {str(target_vocab)!r} share no piece.")
    return rows


def _ids_by_piece(path):
    """The id of each piece, in the common form; the first id is used."""
    ids = {}
    for index, piece in enumerate(_pieces(path)):
        ids.setdefault(piece, index)
    for names in _SPECIAL:
        for name, other in (names, names[::-1]):
            if other in ids:
                ids.setdefault(name, ids[other])
    if path.endswith(".json"):
        for index, piece in enumerate(_read_json(path)):
            ids.setdefault(piece.replace("Ġ", _WORD_START), index)
    return ids


def _pieces(path):
    """The pieces of a vocabulary in the order of ids from 0, in a common form."""
    if path.endswith(".json"):
        return [_from_bytes(piece) for piece in _read_json(path)]
    if path.endswith(".model"):
        model = vocabulary_lib.load_sentencepiece_model(path)
        return [model.id_to_piece(index) for index in range(model.get_piece_size())]
    return [_from_wordpiece(piece) for piece in vocabulary_lib.load_vocab(path)]


def _read_json(path):
    """The pieces of a `vocab.json` in the order of their ids."""
    ids = bounded_json.read_object(path)
    if not _are_numbered(ids.values()):
        raise ValueError(f"{path!r} must map {len(ids)} pieces to the ids from 0 on.")
    return sorted(ids, key=ids.get)


def _are_numbered(ids):
    """Whether these are the integers from 0 on, in any order."""
    return all(type(index) is int for index in ids) and sorted(ids) == list(range(len(ids)))


def _is_special(piece):
    return piece.startswith("[unused") or any(piece in names for names in _SPECIAL)


def _from_wordpiece(piece):
    if piece.startswith("##"):
        return piece.removeprefix("##")
    return piece if _is_special(piece) else _WORD_START + piece


def _from_bytes(piece):
    if _is_special(piece) or not all(letter in byte_letters.BYTES for letter in piece):
        return piece
    # A piece with only part of a character equals no piece of another vocabulary.
    text = bytes(byte_letters.BYTES[letter] for letter in piece).decode("utf-8", "surrogateescape")
    return _WORD_START + text[1:] if text.startswith(" ") else text


# The conversion.


def convert(
    checkpoint,
    output_dir,
    output_format,
    *,
    config=None,
    token_rows=None,
    overwrite=False,
    vocab_file=None,
):
    """Converts a checkpoint to another format, bit by bit the same.

    All weights are kept, also those of heads; training state (Adam's moments, `global_step`) is
    not. From BERT and RoBERTa, a new ETC model is initialized first (`lift_bert`), from ModernBERT
    one of type 'etc_modernbert' (`lift_modernbert`), if the config is of such. With a config,
    the checkpoint must match it: no weight of the encoder may have another shape, be missing
    (except for relative labels and the global side's normalization), or be superfluous.

    Args:
        checkpoint: path, as in `open_source`.
        output_dir: str. Where to write the checkpoint and, if they are known, the files of the
            config and of the vocabulary.
        output_format: 'released' (TF1 names), 'tf2' (`tf.train.Checkpoint`) or 'safetensors'.
        config: `EncoderConfig`; by default the one in the checkpoint's directory, if any.
        token_rows: as in `lift_bert`; only for BERT and RoBERTa.
        overwrite: bool. Whether an existing checkpoint may be replaced.
        vocab_file: path of the model's vocabulary of any kind, or a dict of the names of all its
            files to their bytes; by default, without `token_rows`, that in the checkpoint's
            directory, if any, with the settings of its tokenizer.
    Returns:
        (path of the checkpoint written, `LoadReport` of what was loaded from where).
    Raises:
        ValueError: if the checkpoint cannot be read, has encoder weights that are not floats, does
            not match the config, needs one that is missing, or one of that format exists in
            `output_dir`.

    >>> from etcmodel import checkpoints
    >>> path, report = checkpoints.convert("my_model", "released", "released")
    >>> path, len(report.loaded)
    ('released/model.ckpt', 32)
    """
    writing.check_place(output_dir, output_format)
    source = sources.open_source(checkpoint)
    config = config or _config_beside(source)
    vocabulary = _vocabulary(source, vocab_file, token_rows)
    if not overwrite:  # Before the work, and again after.
        writing.check_absent(output_dir, output_format, config, vocabulary)
    values, report = _converted(source, output_format, config, token_rows)
    beside = {"config": config, "vocabulary": vocabulary}
    path = writing.write(values, output_dir, output_format, **beside, overwrite=overwrite)
    return path, report


def _converted(source, output_format, config, token_rows):
    """(dict of name to array, `LoadReport`). Args, errors: see `convert`."""
    if bert.find_bert(source):
        if config is None:
            raise ValueError(
                "Lifting BERT needs the config of the ETC model (--model_config_file)."
            )
        return _lifted(source, config, lifting.lift_bert, token_rows=token_rows)
    if token_rows is not None:
        raise ValueError(f"Vocabularies are mapped for BERT only, and {source.path!r} is of ETC.")
    if lifting_modernbert.is_for(config, source):
        return _lifted(source, config, lifting_modernbert.load)
    # Others may be anything, such as counters.
    strict.check(source, filter(names_lib.is_in_encoder, source.shapes))
    missing = () if config is None else coverage.check_config(source, config)
    values = {name: source.read(name) for name in source.shapes}
    # Only an object checkpoint has all weights of the model.
    initial = missing if output_format == sources.OBJECTS else ()
    return values, LoadReport(source.path, tuple(values), initial, (), source.training_state)


def _vocabulary(source, vocab_file, token_rows):
    """The files of the vocabulary to write: dict of name to bytes."""
    if vocab_file is None:
        folder = os.path.dirname(source.path)
        return processors.vocabulary_files(folder) if token_rows is None else {}
    if isinstance(vocab_file, dict):
        return vocab_file
    return processors.files_of_vocabulary(vocab_file)


def _config_beside(source):
    path = encoders.config_file_in(os.path.dirname(source.path))
    config = encoders.read_config(path) if path else None
    if config and encoders.encoder_type(config.model_type).seq2seq_classes:
        raise ValueError(
            f"{path} is of a model with an encoder and a decoder (type {config.model_type!r}), "
            "whose folders have one format, Hugging Face's: there is nothing to convert."
        )
    return config


def _lifted(source, config, load, **options):
    """Values of a new model initialized from another system's weights, and the report."""
    model = encoders.build_encoder(config)
    report = load(model, source, **options)
    return {name: v.numpy() for name, v in names_lib.release_names(model).items()}, report
