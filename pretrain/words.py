"""Tokenizes a text and marks where words start."""

from etcmodel.text.byte_bpe import ByteLevelTokenizer

__all__ = ["end_token_ids", "tokenize"]

_CONTINUES_WORD = "##"
_STARTS_WORD = "▁"
# The tokens at the start and at the end of a text, in order of precedence.
_FIRST, _LAST = ("[CLS]", "<s>", "<cls>"), ("[SEP]", "</s>", "<sep>")


def tokenize(text, tokenizer):
    """Tokenizes a text for whole-word masking.

    Words are the units that the tokenizer splits a text into first: at white space and punctuation
    for WordPiece, by its pattern for byte-level BPE; with a SentencePiece model, they begin at "▁".

    Args:
        text: str.
        tokenizer: `tokenization.FullTokenizer` or `byte_bpe.ByteLevelTokenizer`.
    Returns:
        (list of ids, list of 1 for each that starts a word and 0 for the others).
    """
    if isinstance(tokenizer, ByteLevelTokenizer):
        return tokenizer.tokenize_words(text)
    tokens = tokenizer.tokenize(text)
    if tokenizer.sp_model:
        starts = [int(token.startswith(_STARTS_WORD)) for token in tokens]
    else:
        starts = [int(not token.startswith(_CONTINUES_WORD)) for token in tokens]
    return list(tokenizer.convert_tokens_to_ids(tokens)), [1, *starts[1:]] if starts else []


def end_token_ids(tokenizer):
    """The ids of the tokens at the start and at the end of a text: (int, int).

    Args:
        tokenizer: see `tokenize`.
    Raises:
        ValueError: naming the vocabulary, if it lacks one of them.
    """
    found = [
        next((tokenizer.vocab[token] for token in names if token in tokenizer.vocab), None)
        for names in (_FIRST, _LAST)
    ]
    if None in found:
        names = _LAST if found[0] is not None else _FIRST
        raise ValueError(
            f"The vocabulary {str(tokenizer.source_file)!r} has none of the tokens "
            f"{', '.join(names)}, which stand at the ends of a window of text."
        )
    return tuple(found)
