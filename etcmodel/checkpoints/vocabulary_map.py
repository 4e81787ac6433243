"""Maps the rows of one vocabulary's embedding table to those of another's."""

import numpy as np

from etcmodel import bounded_json
from etcmodel.text import byte_letters, vocabulary

__all__ = ["token_rows"]

_SPECIAL = (
    ("[PAD]", "<pad>"),
    ("[UNK]", "<unk>"),
    ("[CLS]", "<s>"),
    ("[SEP]", "</s>"),
    ("[MASK]", "<mask>"),
)
_WORD_START = vocabulary.SPIECE_UNDERLINE


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
        model = vocabulary.load_sentencepiece_model(path)
        return [model.id_to_piece(index) for index in range(model.get_piece_size())]
    return [_from_wordpiece(piece) for piece in vocabulary.load_vocab(path)]


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
