"""Vocabularies: WordPiece text files and SentencePiece models, local or remote."""

import dataclasses
import os
import re

from etcmodel import bounded_json, extras, file_systems, shown_values
from etcmodel.text import characters

TOKENIZER_FILE = "tokenizer.json"  # Hugging Face's, with a vocabulary of any kind.

SPIECE_UNDERLINE = "▁"
_SAYS_WORD_PIECES = re.compile(rb'"type"\s*:\s*"WordPiece"')
# Word pieces here, and in all of BERT's; by part of a `tokenizer.json`.
_AS_BERT = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"unk_token": "[UNK]", "continuing_subword_prefix": "##"},
}
_CAPITAL = re.compile(r"(?!\[).*[A-Z]")  # Not of a special token, such as [CLS].
_LEAST_CASED = 0.01  # Share of pieces with capitals in cased vocabularies.


def convert_to_unicode(text):
    """Returns `text` as `str`; bytes are decoded as UTF-8, without malformed sequences.

    Raises:
        ValueError: if `text` is neither `str` nor `bytes`.

    >>> from etcmodel.text import tokenization
    >>> tokenization.convert_to_unicode(b"caf\\xc3\\xa9 \\xff")
    'café '
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"`text` must be str or bytes. Received: {type(text).__name__}")


def exists(path):
    """Returns whether there is a file, local or in a bucket."""
    return file_systems.gfile().exists(path) if "://" in str(path) else os.path.exists(path)


def read_bytes(path):
    """Reads a local file, or a remote one such as `gs://…`."""
    if "://" in str(path):
        import tensorflow as tf  # Slow to import, and local files do not need it.

        with tf.io.gfile.GFile(path, "rb") as file:
            return file.read()
    with open(path, "rb") as file:
        return file.read()


def write_bytes(path, content):
    """Writes a local file, or a remote one."""
    opened = file_systems.gfile().GFile if "://" in str(path) else open
    with opened(path, "wb") as file:
        file.write(content)


def load_vocab(vocab_file):
    """Reads a vocabulary, one token per line; the ids count the distinct lines from 0.

    Args:
        vocab_file: str. Path of a UTF-8 text file, with or without a byte order mark. White space
            around a token is dropped, and a repeated token gets no second id, as in the authors'
            release: see `check_no_token_twice`.

    Returns:
        dict of str to int, in the order of the ids.

    Raises:
        ValueError: naming the file, if it is empty or not UTF-8.

    >>> from etcmodel.text import tokenization
    >>> vocab = tokenization.load_vocab("vocab.txt")
    >>> vocab["[CLS]"], len(vocab)
    (2, 105)
    """
    vocab = {}
    for token in _tokens(vocab_file):
        vocab.setdefault(token, len(vocab))
    if not vocab:
        raise ValueError(f"The vocabulary file {str(vocab_file)!r} is empty.")
    return vocab


def check_no_token_twice(vocab_file):
    """Checks that all tokenizers give the tokens of a file the same ids.

    BERT's own tokenizer counts lines, the authors' release counts tokens.

    Raises:
        ValueError: naming the file and both lines, if a token occurs twice.
    """
    tokens, lines = _tokens(vocab_file), {}
    while tokens and not tokens[-1]:
        tokens.pop()  # Blank lines at the end shift no ids.
    for number, token in enumerate(tokens, 1):
        if (first := lines.setdefault(token, number)) != number:
            raise ValueError(
                f"{vocab_file}, lines {first} and {number}: it has {token!r:.80} twice: "
                "tokenizers differ in the ids of what follows. Make one of them another token."
            )


def check_beside(vocab_file):
    """Checks that a `tokenizer.json` beside word pieces, if there is one, has them with their ids.

    Args:
        vocab_file: str. Path of a UTF-8 text file, one token per line.
    Raises:
        ValueError: naming both files and the first id with two tokens, or the `tokenizer.json`, if
            it is damaged; or see `check_no_token_twice`.
    """
    path = os.path.join(os.path.dirname(str(vocab_file)), TOKENIZER_FILE)
    if not exists(path):
        return
    check_no_token_twice(vocab_file)
    own, added = _ids_in_json(bounded_json.load_object(read_bytes(path), path), path)
    if own == (vocab := load_vocab(vocab_file)):  # As nearly always, and fast.
        return
    ours = {index: token for token, index in vocab.items() if token}  # Blank lines are no tokens.
    theirs = {index: token.strip() for token, index in own.items() if token.strip()}
    # A file of lines may also list the tokens that were added to it.
    listed = {**theirs, **{index: x.strip() for x, index in added.items() if index in ours}}
    differ = [x for x in ours.keys() | listed.keys() if ours.get(x) != listed.get(x)]
    if differ:
        one, other = (shown_values.shown(x.get(min(differ))) for x in (ours, listed))
        raise ValueError(
            f"{vocab_file} and {path}, which Hugging Face's library reads, are different "
            f"vocabularies: the token with the id {min(differ)} is {one} in the first, {other} in "
            "the second. Remove the one that the model was not trained with."
        )


def _ids_in_json(entries, path):
    """(ids of the tokens of a `tokenizer.json`, those of the tokens added to it): two dicts."""
    try:
        own = entries["model"]["vocab"]
        if isinstance(own, list):  # Of pairs of a token and its score.
            own = {token: index for index, (token, _) in enumerate(own)}
        added = {x["content"]: x["id"] for x in entries.get("added_tokens") or []}
        if all(type(x) is int for x in (*own.values(), *added.values())):
            return own, added
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    raise ValueError(f"{path}: `vocab` and `added_tokens` must be tokens with ids.")


def is_cased(vocab_file):
    """Returns whether word pieces come from text that kept its capitals: bool.

    Args:
        vocab_file: str. Path of a UTF-8 text file, one token per line.
    """
    tokens = _tokens(vocab_file)
    return sum(map(bool, map(_CAPITAL.match, tokens))) > _LEAST_CASED * len(tokens)


def has_word_pieces(path):
    """Returns whether this is a `tokenizer.json` of word pieces, as BERT's: bool; never raises."""
    is_named_so = os.path.basename(str(path)) == TOKENIZER_FILE
    return is_named_so and exists(path) and bool(_SAYS_WORD_PIECES.search(read_bytes(path)))


def word_piece_settings(path):
    """Reads the case setting of a `tokenizer.json` of word pieces: bool, `do_lower_case`.

    Raises:
        ValueError: naming the file and the entry, if text is processed differently than in BERT.
    """
    return _word_pieces(path)[1]


def _word_pieces(path):
    """(content of a `tokenizer.json` of word pieces, `do_lower_case`); errors as for the latter."""
    entries = bounded_json.load_object(read_bytes(path), path)
    for part, wanted in _AS_BERT.items():
        found = entries.get(part)
        found = found if isinstance(found, dict) else {}
        for name, value in wanted.items():
            if found.get(name) != value:
                raise ValueError(
                    f"{path}: `{name}` of `{part}` must be {value!r}, as in BERT. Received: "
                    f"{shown_values.shown(found.get(name))}"
                )
    normalizer = entries["normalizer"]
    is_lower, strips = normalizer.get("lowercase"), normalizer.get("strip_accents")
    if not isinstance(is_lower, bool) or strips not in (None, is_lower):
        raise ValueError(
            f"{path}: text must be lower-cased and lose its accents, or neither. Received: "
            f"lowercase={shown_values.shown(is_lower)}, strip_accents={shown_values.shown(strips)}"
        )
    return entries, is_lower


def file_content(path):
    """The bytes of a vocabulary as a processor writes it: the word pieces of a `tokenizer.json`."""
    if not has_word_pieces(path):
        return read_bytes(path)
    return "".join(f"{token}\n" for token in own_tokens(path)).encode()


def own_tokens(path):
    """Reads a `tokenizer.json` of word pieces without the tokens added to them: dict of ids.

    Raises:
        ValueError: see `load_vocab`.
    """
    return {token: index for index, token in enumerate(_tokens_of_json(path, with_added=False))}


def _tokens_of_json(path, with_added=True):
    entries, _ = _word_pieces(path)
    added = entries.get("added_tokens") or [] if with_added else []
    try:
        ids = {**entries["model"]["vocab"], **{x["content"]: x["id"] for x in added}}
        tokens = sorted(ids, key=ids.get)
    except (KeyError, TypeError):
        raise ValueError(f"{path}: `vocab` and `added_tokens` must be tokens with ids.") from None
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError(f"{path}: ids must count the tokens from 0, each once.")
    return tokens


def _tokens(vocab_file):
    if has_word_pieces(vocab_file):
        return _tokens_of_json(vocab_file)
    content = read_bytes(vocab_file)
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{vocab_file}, line {line}: the vocabulary is not UTF-8.") from None
    return [line.strip() for line in lines[: None if lines[-1] else -1]]


def load_sentencepiece_model(spm_model_file):
    """Loads a SentencePiece model.

    Raises:
        ValueError: if the file is not a SentencePiece model.
    """
    with extras.needed("text"):
        import sentencepiece

    content = read_bytes(spm_model_file)
    try:
        if not content:  # An empty protocol buffer parses, but then fails on every call.
            raise RuntimeError("the file is empty")
        return sentencepiece.SentencePieceProcessor(model_proto=content)
    except RuntimeError as error:
        raise ValueError(f"{str(spm_model_file)!r} is no SentencePiece model: {error}") from error


def convert_by_vocab(vocab, items):
    """Looks up each of `items` in the dict `vocab` (tokens to ids, or ids to tokens).

    Raises:
        KeyError: naming the first item that is not in the vocabulary.

    >>> from etcmodel.text import tokenization
    >>> tokenization.convert_by_vocab({"a": 7, "b": 8}, ["b", "a"])
    [8, 7]
    """
    return [vocab[item] for item in items]


def convert_tokens_to_ids(vocab, tokens):
    """Returns the ids of `tokens` in the dict `vocab`.

    >>> from etcmodel.text import tokenization
    >>> tokenization.convert_tokens_to_ids({"a": 7, "b": 8}, ["b", "a"])
    [8, 7]
    """
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab, ids):
    """Returns the tokens of `ids` in the dict `inv_vocab`.

    >>> from etcmodel.text import tokenization
    >>> tokenization.convert_ids_to_tokens({7: "a", 8: "b"}, [8, 7])
    ['b', 'a']
    """
    return convert_by_vocab(inv_vocab, ids)


def known_ids(ids, vocabulary):
    """Filters ids for decoding, in all systems: keeps those with a token in the vocabulary.

    A model may have more ids than its vocabulary has tokens, such as rows that pad its table to a
    multiple of 128. They stand for no text and are dropped.

    Args:
        ids: iterable of int.
        vocabulary: container of int. The ids with a token.
    Returns:
        list of int.
    Raises:
        ValueError: naming the position, if an id is negative, such as the -100 of labels: no model
            has such ids.
    """
    ids = list(map(int, ids))
    for place, index in enumerate(ids):
        if index < 0:
            raise ValueError(f"`ids[{place}]` must be at least 0. Received: {index}")
    return [index for index in ids if index in vocabulary]


def encode_pieces(sp_model, text, return_unicode=True, sample=False):
    """Splits `text` into the pieces of a SentencePiece model.

    A piece that ends in a digit and a comma is split again, so that numbers look the same with and
    without a comma after them. The number then starts with `▁`, even within a word: the released
    checkpoints were trained on that.

    Args:
        sp_model: a `sentencepiece.SentencePieceProcessor`.
        text: str or bytes. Halves of surrogate pairs, which UTF-8 lacks, are read as U+FFFD.
        return_unicode: ignored; the pieces are always str.
        sample: bool. Whether to draw one of the 64 best segmentations instead of taking the best.

    Returns:
        list of str.

    >>> from etcmodel.text import tokenization
    >>> sp_model = tokenization.FullTokenizer(None, spm_model_file="spiece.model").sp_model
    >>> tokenization.encode_pieces(sp_model, "The river.")
    ['▁Th', 'e', '▁river', '.']
    """
    text = characters.replace_surrogates(convert_to_unicode(text))
    if sample:
        raw_pieces = sp_model.SampleEncodeAsPieces(text, 64, 0.1)
    else:
        raw_pieces = sp_model.EncodeAsPieces(text)
    pieces = []
    for piece in raw_pieces:
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            number = piece[:-1].replace(SPIECE_UNDERLINE, "")
            pieces += [*sp_model.EncodeAsPieces(number), ","]
        else:
            pieces.append(piece)
    return pieces


def encode_ids(sp_model, text, sample=False):
    """Returns the ids of `encode_pieces(sp_model, text, sample=sample)`.

    >>> from etcmodel.text import tokenization
    >>> sp_model = tokenization.FullTokenizer(None, spm_model_file="spiece.model").sp_model
    >>> tokenization.encode_ids(sp_model, "The river.")
    [46, 43, 15, 3]
    """
    return [sp_model.PieceToId(piece) for piece in encode_pieces(sp_model, text, sample=sample)]


def check_token_ids(config, tokenizer, ending="_token_id"):
    """Checks that every id of a task's input configuration has a token.

    Args:
        config: dataclass whose fields with that ending are int.
        tokenizer: `tokenization.FullTokenizer`.
        ending: str. How the names of the fields end.
    Raises:
        ValueError: naming the field, its id, and the vocabulary's file and size.
    """
    size = len(tokenizer.vocab)
    for field in dataclasses.fields(config):
        if field.name.endswith(ending) and getattr(config, field.name) >= size:
            raise ValueError(
                f"`{field.name}` must be an id of the vocabulary "
                f"{str(tokenizer.source_file)!r}, which has {size} tokens. "
                f"Received: {getattr(config, field.name)}"
            )
