"""Tokenizers: BERT's word pieces and SentencePiece models behind one `FullTokenizer`.

A text is cleaned by one `str.translate`, split at white space, and every word is tokenized only
once: the rest is a dictionary look-up. TensorFlow is imported only to read remote files, so that
the workers of a preprocessing pipeline start fast.

Source: Devlin et al. 2018 (arXiv:1810.04805) for the word pieces; the names are the release's.
"""

import hashlib
import re

from etcmodel.text import added_tokens, characters, fairseq_pieces
from etcmodel.text.vocabulary import (
    SPIECE_UNDERLINE,
    convert_by_vocab,
    convert_ids_to_tokens,
    convert_to_unicode,
    convert_tokens_to_ids,
    encode_ids,
    encode_pieces,
    file_content,
    has_word_pieces,
    load_sentencepiece_model,
    load_vocab,
    own_tokens,
    word_piece_settings,
)

__all__ = [
    "SPIECE_UNDERLINE",
    "BasicTokenizer",
    "FullTokenizer",
    "WordpieceTokenizer",
    "convert_by_vocab",
    "convert_ids_to_tokens",
    "convert_to_unicode",
    "convert_tokens_to_ids",
    "digest",
    "encode_ids",
    "encode_pieces",
    "file_sha256",
    "load_sentencepiece_model",
    "load_vocab",
    "printable_text",
    "validate_case_matches_checkpoint",
    "whitespace_tokenize",
]

_LOWER_CASED_MODELS = ("uncased_", "multilingual_", "chinese_")
_CASED_MODELS = ("cased_", "multi_cased_")
_MAX_WORDS_WITH_IDS = 1 << 16
_ASCII_TOKEN = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z]")  # Other characters are punctuation.


def printable_text(text):
    """Returns `text` in the form that `print` takes: see `convert_to_unicode`.

    >>> from etcmodel.text import tokenization
    >>> tokenization.printable_text(b"caf\\xc3\\xa9")
    'café'
    """
    return convert_to_unicode(text)


def whitespace_tokenize(text):
    """Splits `text` at white space: a list of str.

    >>> from etcmodel.text import tokenization
    >>> tokenization.whitespace_tokenize(" A  good\\tbook. ")
    ['A', 'good', 'book.']
    """
    return text.split()


def validate_case_matches_checkpoint(do_lower_case, init_checkpoint):
    """Compares `do_lower_case` with the folder name of a public BERT checkpoint.

    Args:
        do_lower_case: bool. The tokenizer's setting.
        init_checkpoint: str or None. `…/<model name>/bert_model.ckpt`; other paths are accepted.

    Raises:
        ValueError: if the model of that name was trained on text of the other case.

    >>> from etcmodel.text import tokenization
    >>> path = "uncased_L-12_H-768_A-12/bert_model.ckpt"
    >>> tokenization.validate_case_matches_checkpoint(True, path)
    >>> tokenization.validate_case_matches_checkpoint(False, path)
    Traceback (most recent call last):
        ...
    ValueError: `do_lower_case` must be True for the checkpoint
    'uncased_L-12_H-768_A-12/bert_model.ckpt', whose model 'uncased_L-12_H-768_A-12' is uncased.
    Received: do_lower_case=False
    """
    match = re.search(r"([\w-]+)/bert_model\.ckpt", init_checkpoint or "")
    name = match.group(1) if match else ""
    expects_lower = name.startswith(_LOWER_CASED_MODELS)
    if not (expects_lower or name.startswith(_CASED_MODELS)):
        return
    if expects_lower != bool(do_lower_case):
        raise ValueError(
            f"`do_lower_case` must be {expects_lower} for the checkpoint {init_checkpoint!r}, "
            f"whose model {name!r} is {'un' if expects_lower else ''}cased. "
            f"Received: {do_lower_case=}"
        )


class BasicTokenizer:
    """Splits a text at white space and punctuation, and sets CJK ideographs apart.

    Args:
        do_lower_case: bool. Also lower-case the text and strip its accents.

    >>> from etcmodel.text import tokenization
    >>> tokenization.BasicTokenizer(do_lower_case=True).tokenize("It's Émile's.")
    ['it', "'", 's', 'emile', "'", 's', '.']
    """

    def __init__(self, do_lower_case=True):
        self.do_lower_case = do_lower_case
        self._words = characters.Memo(self.split_word)

    def tokenize(self, text):
        """Returns the tokens of `text` (str or bytes), a list of str.

        >>> from etcmodel.text import tokenization
        >>> tokenization.BasicTokenizer(do_lower_case=False).tokenize(b"Who is it?")
        ['Who', 'is', 'it', '?']
        """
        return [token for word in self.split_words(text) for token in self._words[word]]

    def tokenize_words(self, text):
        """Like `tokenize`, but with a list of str for each word between white space in `text`."""
        words = convert_to_unicode(text).translate(characters.CLEAN_BETWEEN_SPACES).split()
        return [self.tokenize(word) for word in words]

    def split_words(self, text):
        """Returns the words of the cleaned `text`; `tokenize` treats each independently."""
        return convert_to_unicode(text).translate(characters.CLEAN).split()

    def split_word(self, word):
        """Returns the tokens of a word from `split_words`, a list of str; nothing is cached."""
        if word.isascii():  # The usual case, and fast: there are no accents.
            return _ASCII_TOKEN.findall(word.lower() if self.do_lower_case else word)
        if self.do_lower_case:
            word = characters.strip_accents(word.lower())
        spaced = "".join(f" {char} " if characters.is_punctuation(char) else char for char in word)
        return spaced.split()


class WordpieceTokenizer:
    """Splits words into the longest pieces of a vocabulary, from left to right.

    Args:
        vocab: dict of str to int. Pieces that continue a word start with `##`.
        unk_token: str. Replaces words that the vocabulary cannot spell.
        max_input_chars_per_word: int. A word of more characters is unknown.

    >>> from etcmodel.text import tokenization
    >>> vocab = {"[UNK]": 0, "book": 1, "##s": 2}
    >>> tokenization.WordpieceTokenizer(vocab).tokenize("books cook")
    ['book', '##s', '[UNK]']
    """

    def __init__(self, vocab, unk_token="[UNK]", max_input_chars_per_word=200):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        self._longest = max(map(len, vocab), default=0)
        self._words = characters.Memo(self._split_word)

    def tokenize(self, text):
        """Returns the pieces of `text` (str or bytes), a list of str.

        >>> from etcmodel.text import tokenization
        >>> tokenization.WordpieceTokenizer({"[UNK]": 0, "a": 1, "##b": 2}).tokenize("ab ba")
        ['a', '##b', '[UNK]']
        """
        words = whitespace_tokenize(convert_to_unicode(text))
        return [piece for word in words for piece in self._words[word]]

    def pieces_of_word(self, word):
        """Returns the pieces of a str without white space, a tuple of str."""
        return self._words[word]

    def _split_word(self, word):
        if len(word) > self.max_input_chars_per_word:
            return (self.unk_token,)
        pieces = []
        start = 0
        while start < len(word):
            piece = self._longest_piece(word, start)
            if piece is None:
                return (self.unk_token,)
            start += len(piece) - (2 if start else 0)
            pieces.append(piece)
        return tuple(pieces)  # No work for the garbage collector.

    def _longest_piece(self, word, start):
        prefix = "##" if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            piece = prefix + word[start:end]
            if piece in self.vocab:
                return piece
        return None


def file_sha256(path):
    """Returns the hexadecimal digest of a file; for vocabularies see `vocabulary_files.sha256`."""
    return digest(path, added_tokens.beside(path))


def digest(path, added):
    """Returns the hexadecimal digest of a vocabulary's file and of added tokens."""
    return hashlib.sha256(file_content(path) + added_tokens.digest(added)).hexdigest()


class FullTokenizer:
    """Tokenizer of word pieces, or of a SentencePiece model: text to tokens to ids.

    Args:
        vocab_file: str. A WordPiece vocabulary, one token per line, or a `tokenizer.json` with one.
            Ignored with `spm_model_file`.
        do_lower_case: bool. Whether to lower-case text and strip accents before splitting it into
            word pieces.
        spm_model_file: str or None. A SentencePiece model, which does its own normalization; none
            that fairseq has numbered, which `vocabulary_files.open_tokenizer` takes.
        split_punctuation: bool. Whether to split text by `BasicTokenizer` (in its own case) before
            the SentencePiece model, so that "The end." gives the pieces of "The", "end" and ".",
            each as a word. The released checkpoint `etc_large_split_punctuation` was trained this
            way. Word pieces are always split this way, and it cannot be given with them.
        added: sequence of `added_tokens.AddedToken`; None for those in files beside the vocabulary.

    Attributes:
        added: `added_tokens.AddedTokens`, which are not split.

    Raises:
        ValueError: if neither file is given, or the given one cannot be read as such, or fairseq
            has numbered it; if `split_punctuation` is given without `spm_model_file`.

    >>> from etcmodel.text import tokenization
    >>> tokenizer = tokenization.FullTokenizer("vocab.txt")
    >>> tokens = tokenizer.tokenize("A good bird.")
    >>> tokens, tokenizer.convert_tokens_to_ids(tokens)
    (['a', 'good', 'b', '##i', '##r', '##d', '.'], [15, 91, 16, 66, 75, 61, 43])
    """

    added = added_tokens.AddedTokens()

    def __init__(
        self,
        vocab_file,
        do_lower_case=True,
        spm_model_file=None,
        split_punctuation=False,
        added=None,
    ):
        if not (vocab_file or spm_model_file):
            raise ValueError("Either `vocab_file` or `spm_model_file` must be given.")
        if split_punctuation and not spm_model_file:
            raise ValueError(
                "`split_punctuation` is for SentencePiece models: word pieces are always split at "
                f"punctuation. Leave it out for {str(vocab_file)!r}."
            )
        self.source_file = spm_model_file or vocab_file
        self.split_punctuation = split_punctuation
        self.sp_model = None
        if spm_model_file:
            if fairseq_pieces.is_of(spm_model_file):
                raise ValueError(
                    f"`spm_model_file` is {str(spm_model_file)!r}, whose pieces have the numbers "
                    "of XLM-RoBERTa or CamemBERT. Give it as `vocab_file`."
                )
            self.sp_model = load_sentencepiece_model(spm_model_file)
            size = self.sp_model.GetPieceSize()
            self.vocab = {self.sp_model.IdToPiece(index): index for index in range(size)}
            self.basic_tokenizer = BasicTokenizer(do_lower_case=False)
        else:
            self.vocab = load_vocab(vocab_file)
            if has_word_pieces(vocab_file) and word_piece_settings(vocab_file) != do_lower_case:
                raise ValueError(
                    f"`do_lower_case` must be {not do_lower_case}, as {str(vocab_file)!r} has it. "
                    f"Received: {do_lower_case}"
                )
            self.basic_tokenizer = BasicTokenizer(do_lower_case=do_lower_case)
            own = own_tokens(vocab_file) if has_word_pieces(vocab_file) else self.vocab
            self.wordpiece_tokenizer = WordpieceTokenizer(vocab=own)
            self.vocab = dict(own)
        found = added_tokens.beside(self.source_file, self.vocab) if added is None else added
        self._set_added(added_tokens.AddedTokens(found, self.basic_tokenizer.do_lower_case))
        self._words_with_ids = characters.Memo(self._encode, _MAX_WORDS_WITH_IDS)
        self._words = characters.Memo(self._split_word)

    def _set_added(self, added):
        self.added = added
        self.vocab |= added.ids
        self.inv_vocab = {index: token for token, index in self.vocab.items()}

    def add_tokens(self, tokens, special_tokens=False):
        """Adds tokens that are then not split, such as `[question]`, behind all others.

        A token that the vocabulary has keeps its id. Processors have a method of this name.

        Args:
            tokens: list of str, or one. Not case-sensitive if the text is turned into lower case,
                unless they are special.
            special_tokens: bool. Whether they are special, as in Hugging Face's library.
        Returns:
            int. How many of them the vocabulary did not have.
        Raises:
            ValueError: naming the argument, if one is not a str or is blank.

        >>> from etcmodel.text import tokenization
        >>> tokenizer = tokenization.FullTokenizer("vocab.txt")
        >>> tokenizer.add_tokens(["[river]"]), tokenizer.tokenize("A good[river]bird")[:3]
        (1, ['a', 'good', '[river]'])
        """
        names, size = added_tokens.checked(tokens), max(self.vocab.values()) + 1
        more = self.added.with_more(names, special_tokens, self.vocab, size)
        before = len(self.vocab)
        self._set_added(more)
        self._words_with_ids.clear()
        return len(self.vocab) - before

    def tokenize(self, text):
        """Returns the tokens of `text` (str or bytes), a list of str.

        >>> from etcmodel.text import tokenization
        >>> tokenizer = tokenization.FullTokenizer(None, spm_model_file="spiece.model")
        >>> tokenizer.tokenize("The river is long.")
        ['▁Th', 'e', '▁river', '▁is', '▁long', '.']
        """
        if self.added:
            text, pieces = convert_to_unicode(text), []
            for start, end, index in self.added.split(text):
                is_own = index is None
                pieces += self._tokenize(text[start:end]) if is_own else [self.inv_vocab[index]]
            return pieces
        return self._tokenize(text)

    def _tokenize(self, text):
        if self.sp_model and not self.split_punctuation:
            return encode_pieces(self.sp_model, text)
        words = self.basic_tokenizer.split_words(text)
        return [piece for word in words for piece in self._words[word]]

    def pieces_of_word(self, word):
        """Returns the tokens and ids of a text, cached: for words between white space.

        Returns:
            (tuple of str, tuple of int).
        """
        return self._words_with_ids[word]

    def convert_tokens_to_ids(self, tokens):
        """Returns the ids of `tokens`; SentencePiece models give unknown pieces the id of `<unk>`.

        >>> from etcmodel.text import tokenization
        >>> tokenization.FullTokenizer("vocab.txt").convert_tokens_to_ids(["[CLS]", "[SEP]"])
        [2, 3]
        """
        if self.sp_model:
            ids = self.added.ids
            return [ids[x] if x in ids else self.sp_model.PieceToId(x) for x in tokens]
        return convert_by_vocab(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids):
        """Returns the tokens of `ids` (a sequence of int).

        >>> from etcmodel.text import tokenization
        >>> tokenization.FullTokenizer("vocab.txt").convert_ids_to_tokens([2, 3])
        ['[CLS]', '[SEP]']
        """
        if self.sp_model and not self.added:
            return [self.sp_model.IdToPiece(int(index)) for index in ids]
        return convert_by_vocab(self.inv_vocab, ids)

    def source_sha256(self):
        """Returns a hexadecimal digest of the vocabulary's file, equal for equal vocabularies."""
        return digest(self.source_file, self.added.tokens)

    def require_tokens(self, tokens):
        """Checks that the vocabulary has the given special tokens.

        Raises:
            ValueError: naming the file and the missing tokens.
        """
        missing = [token for token in tokens if token not in self.vocab]
        if missing:
            raise ValueError(
                f"The vocabulary {str(self.source_file)!r} lacks the tokens {', '.join(missing)}."
            )

    def _encode(self, text):
        is_clean = text.isascii() and text.isprintable() and " " not in text
        whole = self.added or (self.sp_model and not self.split_punctuation)
        tokens = self._split_word(text) if is_clean and not whole else self.tokenize(text)
        return tuple(tokens), tuple(self.convert_tokens_to_ids(tokens))

    def _split_word(self, word):
        tokens = self.basic_tokenizer.split_word(word)
        return [piece for token in tokens for piece in self._pieces(token)]

    def _pieces(self, token):
        if self.sp_model:
            return encode_pieces(self.sp_model, token)
        return self.wordpiece_tokenizer.pieces_of_word(token)
