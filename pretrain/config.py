"""Options of the windows of pre-training text, and of masking."""

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
    """The ids of special tokens, which represent no text: tuple of int.

    Args:
        vocab: dict of str to int.
    """
    return tuple(sorted(vocab[token] for token in _SPECIAL_TOKENS if token in vocab))


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowOptions(Options):
    """The options of windows."""

    long_seq_length: int = changed(
        LengthOptions,
        "long_seq_length",
        help_text="Length of a window in word pieces, including padding.",
    )
    global_seq_length: int = changed(
        LengthOptions,
        "global_seq_length",
        help_text="Number of sentences per window, including padding.",
    )
    windows: str = option(
        SENTENCES,
        "Kind of windows: sentences, with a global token for each sentence (ETC); or text, which "
        "joins documents and cuts them into full windows (Longformer, GMAT) and ignores the "
        "options for sentences.",
        role="features",
        choices=WINDOWS,
    )
    min_sentences: int = option(
        7, "Drop documents with fewer sentences.", role="features", lower_bound=1
    )
    pack_documents: bool = option(
        True,
        "Pack several short documents into one window; attention does not cross documents.",
        role="features",
    )
    sentence_splitter: str = option(
        "punkt",
        "How text is split into sentences: punkt (as NLTK does), or simple (at ., ! or ? before "
        "white space).",
        role="features",
        choices=sentence_splitting.SENTENCE_SPLITTERS,
    )
    document_separator: str = option(
        "blank_line",
        "What ends a document in a text file: a blank line, or the end of the file.",
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
    """The amount of masking (paper, appendices B and C)."""

    mlm_share: float = option(
        0.15,
        "Fraction of the tokens outside masked sentences that are masked and predicted.",
        role="training",
        lower_bound=0,
        upper_bound=1,
    )
    cpc_share: float = option(
        0.1,
        "Fraction of the sentences that are masked as a whole, for contrastive predictive coding "
        "(CPC). 0: no CPC.",
        role="training",
        lower_bound=0,
        upper_bound=1,
    )
    max_cpc_sentence_length: int = option(
        64,
        "Maximum length, in word pieces, of a sentence masked as a whole; it is also encoded by "
        "itself, in an input of this length.",
        role="training",
        lower_bound=1,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingConfig(MaskingOptions):
    """How tokens and sentences are chosen and masked.

    Attributes:
        mask_token_id: int.
        special_token_ids: tuple of int. Never masked.
        random_token_ids: tuple of int. Candidates for random replacement.
        long_seq_length, global_seq_length: int. Lengths of a window.
    Raises:
        ValueError: if a fraction is outside [0, 1], or a length is not positive.
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
        """Makes the configuration with the ids of a `FullTokenizer`'s vocabulary.

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
        """Maximum number of tokens to predict in a window: int."""
        return math.ceil(self.mlm_share * self.long_seq_length)

    @property
    def max_cpc_sentences(self):
        """Maximum number of sentences of a window that are masked as a whole: int."""
        return math.ceil(self.cpc_share * self.global_seq_length)
