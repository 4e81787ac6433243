"""Builds a WordPiece vocabulary from one's own texts, if there is no checkpoint with one."""

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
    """Builds an uncased WordPiece vocabulary of characters and whole words, without accents.

    Words are those into which the uncased `BasicTokenizer` splits a text: `foo_bar` has two. Words
    of ASCII letters and digits are never unknown: if they are not a piece, they are split into
    characters.

    Args:
        texts: iterable of str.
        max_size: int. The most pieces; the rarest words are left out.
    Returns:
        list of str. Special pieces, characters, `##` characters, then words, frequent ones first.
    Raises:
        ValueError: if `texts` is a single str, or contains something other than text.

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
    """Writes the vocabulary of `build_vocabulary` as a `vocab.txt`, one piece per line.

    It is for models trained from scratch; a checkpoint has a vocabulary of its own.

    Args:
        path: str. The file appears there once it is complete; folders are created.
        texts, max_size: see `build_vocabulary`.
    Returns:
        int. The number of pieces.
    Raises:
        ValueError: see `build_vocabulary`.
        OSError: if the file cannot be written.

    >>> from etcmodel.text.word_vocabulary import write_vocabulary
    >>> write_vocabulary("words.txt", ["A good book.", "A bad book."], max_size=500)
    211
    """
    pieces = build_vocabulary(texts, max_size=max_size)
    atomic_files.write_text(path, [piece + "\n" for piece in pieces])
    return len(pieces)
