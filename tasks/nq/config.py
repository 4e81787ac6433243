"""What the features of Natural Questions depend on."""

import dataclasses

from etcmodel.models import vocabulary

__all__ = ["ANSWER_TYPES", "NqInputConfig", "special_token_ids"]

# What an annotation says, and what the model's answer type head tells apart.
ANSWER_TYPES = {"none": 0, "yes": 1, "no": 2, "long": 3, "short": 4}

# Opening and closing tags in word pieces: BERT's 107 and 108, as in the release, or in a vocabulary
# without these the last two that every vocabulary of ours has.
_HTML_TOKENS = (("[unused102]", "[unused103]"), ("[unused97]", "[unused98]"))

# The released SentencePiece vocabulary: CLS, SEP and the HTML tags by the ids of `<unused_N>`.
_SENTENCEPIECE_IDS = {
    "cls_token_id": 64,
    "sep_token_id": 3,
    "html_start_token_id": 36,
    "html_end_token_id": 37,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class NqInputConfig:
    """Settings of `examples.make_windows`; the ids are those of BERT's uncased vocabulary.

    Attributes:
        long_seq_length, global_seq_length: int. Tokens in each input, padding included.
        stride: int. Page tokens from the start of a window to the start of the next one.
        question_len: int. Question tokens kept; the rest is left out.
        is_training: bool. Leave out windows without an answer, at the rates below.
        include_unknown_rate: float. Share of windows without an answer to keep, on pages that have
            one elsewhere; 1 and above keep all.
        include_unknown_rate_for_unanswerable: float or None. The same on pages without any answer;
            None for four times `include_unknown_rate`.
        predict_la_when_no_sa: bool. Where there is no short answer, the long one takes its place.
        include_html_tokens: bool. Keep the tags of the page, as one token for all opening and one
            for all closing tags.
        fixed_blocks: bool. A global token for each `fixed_block_size` long tokens instead of one
            for each candidate (paper, section 4.4, the ablation "fixed blocks").
        fixed_block_size: int.
        global_token_types: tuple of int. Types of candidates' (or blocks'), the CLS and question
            tokens' global tokens. They are written to the records; the model does not read them.
        seed: int. Which windows without an answer are kept.
        release_compatible: bool. Repeat the faults of the authors' release (see the README).
        cls_token_id, sep_token_id: int. First token of the long input; after question and page.
        html_start_token_id, html_end_token_id: int. Opening and closing tags.
        question_global_token_id, candidate_global_token_id: int. Global tokens of question tokens;
            of candidates or blocks.
    """

    long_seq_length: int = 4096
    global_seq_length: int = 230
    stride: int = 2048
    question_len: int = 32
    is_training: bool = True
    include_unknown_rate: float = 1.0
    include_unknown_rate_for_unanswerable: float | None = None
    predict_la_when_no_sa: bool = False
    include_html_tokens: bool = True
    fixed_blocks: bool = False
    fixed_block_size: int = 27
    global_token_types: tuple = (0, 1, 2)
    seed: int = 0
    release_compatible: bool = False
    cls_token_id: int = 101
    sep_token_id: int = 102
    html_start_token_id: int = 107
    html_end_token_id: int = 108
    question_global_token_id: int = 35
    candidate_global_token_id: int = 1

    def __post_init__(self):
        for name in ("stride", "question_len", "fixed_block_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {getattr(self, name)}")
        if self.long_seq_length < self.question_len + 4:
            raise ValueError(
                "`long_seq_length` must leave room for CLS, the question, two SEP and the page. "
                f"Received: long_seq_length={self.long_seq_length}, "
                f"question_len={self.question_len}"
            )
        if not self.fixed_blocks and self.global_seq_length < self.question_len + 3:
            raise ValueError(
                "`global_seq_length` must leave room for CLS, the question, SEP and a candidate. "
                f"Received: global_seq_length={self.global_seq_length}, "
                f"question_len={self.question_len}"
            )
        num_blocks = -(-self.long_seq_length // self.fixed_block_size)
        if self.fixed_blocks and self.global_seq_length < num_blocks:
            raise ValueError(
                f"`global_seq_length` must be at least {num_blocks}, the number of blocks. "
                f"Received: global_seq_length={self.global_seq_length}, "
                f"long_seq_length={self.long_seq_length}, fixed_block_size={self.fixed_block_size}"
            )
        for name in ("include_unknown_rate", "include_unknown_rate_for_unanswerable"):
            rate = getattr(self, name)
            if rate is not None and rate < 0:
                raise ValueError(f"`{name}` must not be negative. Received: {rate}")
        if len(self.global_token_types) != 3:
            raise ValueError(
                "`global_token_types` must be three: of candidates, CLS and the question. "
                f"Received: {self.global_token_types}"
            )

    @property
    def unanswerable_rate(self):
        """Share of the windows to keep on a page without any answer."""
        rate = self.include_unknown_rate_for_unanswerable
        return 4 * self.include_unknown_rate if rate is None else rate

    @classmethod
    def for_tokenizer(cls, tokenizer, **fields):
        """The defaults for a tokenizer's kind of vocabulary, replaced by `fields`.

        Raises:
            ValueError: if the vocabulary lacks a token that the features need.
        """
        config = cls(**{**special_token_ids(tokenizer), **fields})
        config.check_vocabulary(tokenizer)
        return config

    def check_vocabulary(self, tokenizer):
        """Checks that every id of this config has a token.

        Raises:
            ValueError: names the field, its id, and the vocabulary's file and size.
        """
        vocabulary.check_token_ids(self, tokenizer)


def special_token_ids(tokenizer):
    """The ids of CLS, SEP and the two of HTML tags.

    With word pieces they are the vocabulary's, wherever they stand: `[CLS]`, `[SEP]` and two of
    `_HTML_TOKENS`.

    Returns:
        dict of the field of `NqInputConfig` to int.

    Raises:
        ValueError: if the vocabulary lacks one of them.
    """
    if tokenizer.sp_model:
        return dict(_SENTENCEPIECE_IDS)
    vocab = tokenizer.vocab
    tokenizer.require_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    pairs = [pair for pair in _HTML_TOKENS if all(token in vocab for token in pair)]
    if not pairs:
        tokenizer.require_tokens(_HTML_TOKENS[0])
    tokens = ("[CLS]", "[SEP]", *pairs[0])
    return {name: vocab[token] for name, token in zip(_SENTENCEPIECE_IDS, tokens, strict=True)}
