"""What windows of pre-training text look like, and how they are masked."""

import dataclasses
import math

from etcmodel.options import LengthOptions, Options, changed, option
from etcmodel.text import sentence_splitting

__all__ = [
    "SENTENCES",
    "TEXT",
    "MaskingConfig",
    "MaskingOptions",
    "PretrainInputConfig",
    "WindowOptions",
    "special_token_ids",
]

_MASK_TOKENS = ("[MASK]", "<mask>")
_SPECIAL_TOKENS = (
    *_MASK_TOKENS,
    "[PAD]",
    "[CLS]",
    "[SEP]",
    "<pad>",
    "<s>",
    "</s>",
    "<cls>",
    "<sep>",
)
_UNKNOWN_TOKENS = ("[UNK]", "<unk>")
DOCUMENT_SEPARATORS = ("blank_line", "file")
SENTENCES, TEXT = WINDOWS = ("sentences", "text")


def special_token_ids(vocab):
    """Ids of the tokens that stand for no text: tuple of int.

    Args:
        vocab: dict of str to int.
    """
    return tuple(sorted(vocab[token] for token in _SPECIAL_TOKENS if token in vocab))


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowOptions(Options):
    """What windows of text depend on."""

    long_seq_length: int = changed(
        LengthOptions, "long_seq_length", help_text="Word pieces of a window, padding included."
    )
    global_seq_length: int = changed(
        LengthOptions, "global_seq_length", help_text="Sentences of a window, padding included."
    )
    windows: str = option(
        SENTENCES,
        "What windows are for: sentences, with a global token each (ETC); or text, documents one "
        "after the other, cut into full windows (Longformer, GMAT), for which the options of "
        "sentences mean nothing.",
        role="features",
        choices=WINDOWS,
    )
    min_sentences: int = option(
        7, "Drop documents of fewer sentences.", role="features", lower_bound=1
    )
    pack_documents: bool = option(
        True,
        "Put several short documents into a window; attention does not cross them.",
        role="features",
    )
    sentence_splitter: str = option(
        "punkt",
        "How sentences are found: punkt (NLTK's), or simple (at ., ! or ? and white space).",
        role="features",
        choices=sentence_splitting.SENTENCE_SPLITTERS,
    )
    document_separator: str = option(
        "blank_line",
        "What ends a document of a text file: a blank line, or the file's end.",
        role="features",
        choices=DOCUMENT_SEPARATORS,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainInputConfig(WindowOptions):
    """Settings of `examples.make_windows`.

    Attributes:
        sentence_global_token_id: int. The global token of every sentence.
    """

    sentence_global_token_id: int = 1

    def __post_init__(self):
        super().__post_init__()
        if self.windows == TEXT and self.long_seq_length < 3:
            raise ValueError(
                "`long_seq_length` must be at least 3 for windows of text, which have a token at "
                f"each end. Received: {self.long_seq_length}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingOptions(Options):
    """How much is masked (paper, appendices B and C)."""

    mlm_share: float = option(
        0.15,
        "Share of the tokens outside of masked sentences that are to be predicted.",
        role="training",
        lower_bound=0,
        upper_bound=1,
    )
    cpc_share: float = option(
        0.1,
        "Share of the sentences that are masked whole, to be predicted; 0: no CPC.",
        role="training",
        lower_bound=0,
        upper_bound=1,
    )
    max_cpc_sentence_length: int = option(
        64,
        "Longest sentence, in word pieces, that is masked whole: it is encoded on its own in an "
        "input of this length.",
        role="training",
        lower_bound=1,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingConfig(MaskingOptions):
    """How tokens and sentences are chosen and masked.

    Attributes:
        mask_token_id: int.
        special_token_ids: tuple of int. Never masked.
        random_token_ids: tuple of int. What may stand in a token's place.
        long_seq_length, global_seq_length: int. Lengths of a window.
    Raises:
        ValueError: if a share is outside [0, 1], or a length is not positive.
    """

    mask_token_id: int
    special_token_ids: tuple
    random_token_ids: tuple
    long_seq_length: int
    global_seq_length: int

    def __post_init__(self):
        super().__post_init__()
        for name in ("long_seq_length", "global_seq_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be positive. Received: {getattr(self, name)}")

    @classmethod
    def for_tokenizer(cls, tokenizer, **fields):
        """The configuration with the ids of a `FullTokenizer`'s vocabulary.

        Raises:
            ValueError: if the vocabulary has no mask token.
        """
        vocab = tokenizer.vocab
        masks = [vocab[token] for token in _MASK_TOKENS if token in vocab]
        if not masks:
            raise ValueError(
                f"The vocabulary {str(tokenizer.source_file)!r} has no mask token: "
                f"{' or '.join(_MASK_TOKENS)}."
            )
        special = special_token_ids(vocab)
        unused = {*special, *(vocab[token] for token in _UNKNOWN_TOKENS if token in vocab)}
        ordinary = (
            index
            for token, index in vocab.items()
            if index not in unused and not token.startswith("[unused")
        )
        return cls(
            mask_token_id=masks[0],
            special_token_ids=special,
            random_token_ids=tuple(sorted(ordinary)),
            **fields,
        )

    @property
    def max_mlm_tokens(self):
        """Most tokens of a window that are to be predicted: int."""
        return math.ceil(self.mlm_share * self.long_seq_length)

    @property
    def max_cpc_sentences(self):
        """Most sentences of a window that are masked whole: int."""
        return math.ceil(self.cpc_share * self.global_seq_length)
