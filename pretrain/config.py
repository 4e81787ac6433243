"""What windows of pre-training text look like, and how they are masked."""

import dataclasses
import math

from etcmodel.models import sentence_splitting

__all__ = ["MaskingConfig", "PretrainInputConfig", "special_token_ids"]

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


def special_token_ids(vocab):
    """Ids of the tokens that stand for no text: tuple of int.

    Args:
        vocab: dict of str to int.
    """
    return tuple(sorted(vocab[token] for token in _SPECIAL_TOKENS if token in vocab))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainInputConfig:
    """Settings of `examples.make_windows`.

    Attributes:
        long_seq_length: int. Word pieces of a window, padding included.
        global_seq_length: int. Sentences of a window, padding included.
        min_sentences: int. Documents of fewer sentences are dropped (paper, appendix C: 7).
        pack_documents: bool. Put several short documents into a window, between breakpoints.
        sentence_splitter: str. See `etcmodel.models.sentence_splitting`.
        document_separator: 'blank_line' or 'file'. What ends a document of a text file.
        sentence_global_token_id: int. The global token of every sentence.
    Raises:
        ValueError: if a value is outside its range.
    """

    long_seq_length: int = 4096
    global_seq_length: int = 230
    min_sentences: int = 7
    pack_documents: bool = True
    sentence_splitter: str = "punkt"
    document_separator: str = "blank_line"
    sentence_global_token_id: int = 1

    def __post_init__(self):
        for name, lowest in (("long_seq_length", 2), ("global_seq_length", 2)):
            if getattr(self, name) < lowest:
                raise ValueError(
                    f"`{name}` must be at least {lowest}. Received: {getattr(self, name)}"
                )
        sentence_splitting.sentence_splitter(self.sentence_splitter)  # Refuses unknown names.
        if self.document_separator not in DOCUMENT_SEPARATORS:
            raise ValueError(
                f"`document_separator` must be one of {DOCUMENT_SEPARATORS}. "
                f"Received: {self.document_separator!r}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """How tokens and sentences are chosen and masked (paper, appendices B and C).

    Attributes:
        mask_token_id: int.
        special_token_ids: tuple of int. Never masked.
        random_token_ids: tuple of int. What may stand in a token's place.
        long_seq_length, global_seq_length: int. Lengths of a window.
        mlm_share: float. Share of the tokens outside of masked sentences that are to be predicted.
        cpc_share: float. Share of the sentences that are masked whole; 0: no CPC.
        max_cpc_sentence_length: int. Longer sentences are not chosen, for they are encoded on
            their own in an input of this length.
    Raises:
        ValueError: if a share is outside [0, 1], or a length is not positive.
    """

    mask_token_id: int
    special_token_ids: tuple
    random_token_ids: tuple
    long_seq_length: int
    global_seq_length: int
    mlm_share: float = 0.15
    cpc_share: float = 0.1
    max_cpc_sentence_length: int = 64

    def __post_init__(self):
        for name in ("mlm_share", "cpc_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must be in [0, 1]. Received: {getattr(self, name)}")
        for name in ("long_seq_length", "global_seq_length", "max_cpc_sentence_length"):
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
