"""A WordPiece vocabulary of the words of one's own texts, where there is no checkpoint with one."""

import collections
import string

from etcmodel import atomic_files
from etcmodel.text.tokenization import BasicTokenizer

__all__ = ["build_vocabulary", "write_vocabulary"]

# Ids as in BERT's vocabularies, which programs know by number: [CLS] is 101, 1 to 99 are free.
_SPECIAL_PIECES = (
    "[PAD]",
    *(f"[unused{i}]" for i in range(99)),
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
)


def build_vocabulary(texts, *, max_size=30_000):
    """Makes an uncased WordPiece vocabulary of characters and whole words, without accents.

    Words are those that the uncased `BasicTokenizer` splits a text into: `foo_bar` holds two.
    Words of ASCII letters and digits are never unknown: what is not a piece falls into characters.

    Args:
        texts: iterable of str.
        max_size: int. The rarest words are left out beyond this many pieces.
    Returns:
        list of str. Special pieces, characters, `##` characters, then words, frequent ones first.
    Raises:
        ValueError: if `texts` is one str, or holds what is no text.

    >>> from etcmodel.text.word_vocabulary import build_vocabulary
    >>> build_vocabulary(["A good book.", "A bad book."])[-3:]
    ['book', 'bad', 'good']
    """
    if isinstance(texts, str):
        raise ValueError("`texts` must be several texts, such as a list. Received: one str")
    counts, tokenizer = collections.Counter(), BasicTokenizer(do_lower_case=True)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"`texts[{number}]` must be a str. Received: {type(text).__name__}")
        counts.update(tokenizer.tokenize(text))
    spelled = (word for word in counts if len(word) > 1 or word.isalnum())
    inner = {*string.ascii_lowercase, *string.digits, *"".join(spelled)}
    characters = sorted({*inner, *string.punctuation, *"".join(counts)})
    pieces = [*_SPECIAL_PIECES, *characters, *(f"##{character}" for character in sorted(inner))]
    words = sorted((-count, word) for word, count in counts.items() if len(word) > 1)
    return pieces + [word for _, word in words[: max(0, max_size - len(pieces))]]


def write_vocabulary(path, texts, *, max_size=30_000):
    """Writes the vocabulary of `build_vocabulary` as a `vocab.txt`, a piece a line.

    It is for models that are trained from the beginning; a checkpoint has a vocabulary of its own.

    Args:
        path: str. It gets its name when it is complete; folders are made.
        texts, max_size: see `build_vocabulary`.
    Returns:
        int. The number of pieces.
    Raises:
        ValueError: see `build_vocabulary`.
        OSError: if nothing can be written there.

    >>> from etcmodel.text.word_vocabulary import write_vocabulary
    >>> write_vocabulary("words.txt", ["A good book.", "A bad book."], max_size=500)
    211
    """
    pieces = build_vocabulary(texts, max_size=max_size)
    atomic_files.write_text(path, [piece + "\n" for piece in pieces])
    return len(pieces)
