"""Word pieces with every number split into its digits (Geva et al. 2020, section 3.1)."""

from etcmodel.text import alignment, tokenization, vocabulary

START, END = "@", "\\"  # Around an answer; BERT's uncased vocabulary has both.
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_NEEDED = (*_SPECIAL, START, END, *"0123456789", *(f"##{x}" for x in "0123456789"))


class NumberTokenizer(tokenization.FullTokenizer):
    """A `FullTokenizer` of word pieces that splits a number "407" into 4, ##0, ##7.

    Args:
        vocab_file, do_lower_case: see `FullTokenizer`.
    Raises:
        ValueError: naming the file and the missing special pieces, digits and marks around an
            answer, or duplicates.
    """

    def __init__(self, vocab_file, do_lower_case=True):
        vocabulary.check_no_token_twice(vocab_file)
        super().__init__(vocab_file, do_lower_case)
        self.wordpiece_tokenizer = _NumberPieces(self.wordpiece_tokenizer.vocab)
        check_tokenizer(self)


class _NumberPieces(tokenization.WordpieceTokenizer):
    def _split_word(self, word):
        return _digits(word) or super()._split_word(word)


def check_tokenizer(tokenizer):
    """Checks that a `FullTokenizer` has all required pieces.

    Raises:
        ValueError: naming the file and what is missing, or if it is a SentencePiece model.
    """
    if tokenizer.sp_model:
        raise ValueError(
            "Numbers in digits need a vocabulary of word pieces (vocab.txt). Received the "
            f"SentencePiece model {str(tokenizer.source_file)!r}"
        )
    tokenizer.require_tokens(_NEEDED)


def pieces_of(text, tokenizer):
    """Returns the pieces of a text by a `FullTokenizer`, numbers in digits: list of str."""
    words = tokenizer.basic_tokenizer.tokenize(text)
    of_word = tokenizer.wordpiece_tokenizer.tokenize
    return [piece for word in words for piece in _digits(word) or of_word(word)]


def _digits(word):
    """Returns the pieces of a number, a tuple of str; () for any other word."""
    if not (word.isascii() and word.isdigit()):
        return ()
    return (word[0], *(f"##{digit}" for digit in word[1:]))


def text_of_pieces(pieces):
    """Returns the text of a list of pieces: str."""
    return alignment.wordpiece_tokens_to_normalized_text(pieces)


def start_and_end(tokenizer):
    """Returns the ids before and after an answer: list of two int."""
    check_tokenizer(tokenizer)
    return tokenizer.convert_tokens_to_ids([START, END])
