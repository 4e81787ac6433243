"""Word pieces in which every number falls into its digits (Geva et al. 2020, section 3.1)."""

from etcmodel.text import alignment

__all__ = ["END", "START", "check_tokenizer", "pieces_of", "start_and_end", "text_of_pieces"]

START, END = "@", "\\"  # Around an answer; BERT's uncased vocabulary has both.
_NEEDED = ("[CLS]", "[SEP]", START, END, *"0123456789", *(f"##{x}" for x in "0123456789"))


def check_tokenizer(tokenizer):
    """Checks that a `FullTokenizer` has all pieces that are needed.

    Raises:
        ValueError: naming the file and what is missing, or if it is of SentencePiece.
    """
    if tokenizer.sp_model:
        raise ValueError(
            "Numerical reasoning needs word pieces (--vocab_file). Received the SentencePiece "
            f"model {str(tokenizer.source_file)!r}"
        )
    tokenizer.require_tokens(_NEEDED)


def pieces_of(text, tokenizer):
    """The pieces of a text: list of str. Of a number "407": 4, ##0, ##7."""
    words = tokenizer.basic_tokenizer.tokenize(text)
    return [piece for word in words for piece in _pieces_of_word(word, tokenizer)]


def _pieces_of_word(word, tokenizer):
    if word.isascii() and word.isdigit():
        return [word[0], *(f"##{digit}" for digit in word[1:])]
    return tokenizer.wordpiece_tokenizer.tokenize(word)


def text_of_pieces(pieces):
    """The text of a list of pieces: str."""
    return alignment.wordpiece_tokens_to_normalized_text(pieces)


def start_and_end(tokenizer):
    """The ids before and after an answer: list of two int."""
    check_tokenizer(tokenizer)
    return tokenizer.convert_tokens_to_ids([START, END])
