"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, Options, changed, option
from etcmodel.text import vocabulary, vocabulary_files

__all__ = [
    "ANSWER_TYPES",
    "SPAN_SELECTION_METHODS",
    "DecodingConfig",
    "NqConfig",
    "NqDecodingOptions",
    "NqExampleOptions",
    "NqFeatureOptions",
    "NqInputConfig",
    "special_token_ids",
]

# The types of annotations, which the model's answer type head predicts.
ANSWER_TYPES = {"none": 0, "yes": 1, "no": 2, "long": 3, "short": 4}

SPAN_SELECTION_METHODS = ("joint", "disjoint", "joint-exhaustive")

# Opening and closing tags in WordPiece: BERT's 107 and 108, as in the release, or, in a vocabulary
# without these, the last two that every vocabulary of ours has.
_HTML_TOKENS = (("[unused102]", "[unused103]"), ("[unused97]", "[unused98]"))

# The released SentencePiece vocabulary: CLS, SEP and the HTML tags by the ids of `<unused_N>`.
_SENTENCEPIECE_IDS = {
    "cls_token_id": 64,
    "sep_token_id": 3,
    "html_start_token_id": 36,
    "html_end_token_id": 37,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class NqFeatureOptions(Options):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(FeatureOptions, "long_seq_length", lower_bound=5)
    global_seq_length: int = changed(FeatureOptions, "global_seq_length", lower_bound=1)
    stride: int = option(
        2048,
        "Number of page tokens from the start of one window to the start of the next.",
        role="features",
        lower_bound=1,
    )
    question_len: int = option(
        32,
        "Maximum length of the question, in tokens; longer questions are cut.",
        role="features",
        lower_bound=1,
    )
    include_html_tokens: bool = option(
        True,
        "Keep the page's HTML tags: one token for all opening tags and one for all closing tags.",
        role="features",
    )
    fixed_blocks: bool = option(
        False,
        "Use one global token per block of long tokens instead of one per candidate (the ablation "
        "with fixed blocks; paper, section 4.2).",
        role="features",
    )
    fixed_block_size: int = option(
        27, "Number of long tokens per block.", role="features", lower_bound=1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NqDecodingOptions(Options):
    """How answers are decoded from spans."""

    span_selection_method: str = option(
        "joint",
        "How spans are selected: the best start and then its best end; the best start and the best "
        "end independently; or the best pair, with the short answer inside the long one.",
        role="decoding",
        choices=SPAN_SELECTION_METHODS,
    )
    consider_answer_type: bool = option(
        True, "Answer yes or no if that is the most probable answer type.", role="decoding"
    )
    max_short_answer_len: int = option(
        32, "Maximum length of a short answer, in words.", role="decoding", lower_bound=1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NqExampleOptions(NqFeatureOptions):
    """Further options of preprocessing."""

    is_training: bool = option(
        True,
        "Drop windows without an answer, at the rates of the two --include_unknown_rate flags. "
        "With --input_dir, this applies to train and not to dev.",
        role="features",
    )
    include_unknown_rate: float = option(
        1.0,
        "Fraction of windows without an answer to keep, on pages that have one. 1 or more keeps "
        "all.",
        role="features",
        lower_bound=0,
    )
    include_unknown_rate_for_unanswerable: float | None = option(
        None,
        "Same as --include_unknown_rate, for pages without any answer. None: four times "
        "--include_unknown_rate.",
        role="features",
        lower_bound=0,
    )
    predict_la_when_no_sa: bool = option(
        False, "Use the long answer in place of a missing short answer.", role="features"
    )
    global_token_types: tuple[int, ...] = option(
        (0, 1, 2),
        "Type ids of the global tokens for candidates or blocks, for CLS, and for the question. "
        "They are written to the records; the model does not use them.",
        role="features",
        is_repeated=True,
    )
    seed: int = option(
        0, "Seed that decides which windows without an answer are kept.", role="features"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class NqInputConfig(NqExampleOptions, FeatureOptions):
    """Settings of `features.make_windows`; the ids are those of BERT's uncased vocabulary.

    Attributes:
        cls_token_id, sep_token_id: int. First token of the long input; after question and page.
        html_start_token_id, html_end_token_id: int. Opening and closing tags.
        question_global_token_id, candidate_global_token_id: int. Global tokens of question tokens;
            of candidates or blocks.
    """

    cls_token_id: int = 101
    sep_token_id: int = 102
    html_start_token_id: int = 107
    html_end_token_id: int = 108
    question_global_token_id: int = 35
    candidate_global_token_id: int = 1

    def __post_init__(self):
        super().__post_init__()
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
        if len(self.global_token_types) != 3:
            raise ValueError(
                "`global_token_types` must be three: of candidates, CLS and the question. "
                f"Received: {self.global_token_types}"
            )

    @property
    def unanswerable_rate(self):
        """The fraction of windows to keep on a page without any answer."""
        rate = self.include_unknown_rate_for_unanswerable
        return 4 * self.include_unknown_rate if rate is None else rate

    @classmethod
    def for_tokenizer(cls, tokenizer, **fields):
        """The defaults for a tokenizer's kind of vocabulary, overridden by `fields`.

        Raises:
            ValueError: if the vocabulary lacks a token that the features need, or is of a kind
                that they are not made for.
        """
        vocabulary_files.require_pieces(tokenizer)
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

    With WordPiece, they are looked up in the vocabulary: `[CLS]`, `[SEP]` and two of
    `_HTML_TOKENS`.

    Returns:
        dict from the field of `NqInputConfig` to int.

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingConfig(NqDecodingOptions):
    """Settings of `metrics.generate_predictions`.

    Attributes:
        release_compatible: bool. Reproduce the bugs of the authors' release.
    """

    release_compatible: bool = changed(FeatureOptions, "release_compatible")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NqConfig(
    NqFeatureOptions, NqDecodingOptions, options.PaddingOptions, finetuning.FinetuningConfig
):
    """The options of a run besides the training options; the help of each field describes it."""

    aliases = {
        "train_precomputed_file": "train_data",
        "train_num_precomputed": "num_train_examples",
        "predict_precomputed_file": "eval_data",
        "gold_cache_path": "eval_gold",
        "spm_model_path": "spm_model_file",
        "max_seq_length": "long_seq_length",
        "max_global_seq_length": "global_seq_length",
        "cls_tok_id": "cls_token_id",
        "sep_tok_id": "sep_token_id",
    }
    help_texts = {
        "input_file": "Raw file of the questions to answer (JSON lines, packed or not), in mode "
        "predict.",
        "vocab_file": options.WORD_PIECES,
    }

    eval_gold: str | None = changed(
        finetuning.FinetuningConfig,
        "eval_gold",
        help_text=(
            "Annotations of the evaluation examples: Natural Questions files (wildcards allowed), "
            "or a file written by make_gold_cache."
        ),
        is_file=False,
    )
    stride: int = changed(NqFeatureOptions, "stride", role="inference")
    curve_plot_file: str | None = option(
        None,
        "PNG file for a plot of precision, recall and F1 by threshold, written during evaluation.",
        group="evaluation",
    )
    mask_long_output: bool = option(
        False, "Allow answers to start and end only within the page.", role="model"
    )
    cls_token_id: int | None = option(
        None,
        "Id of the CLS token, for --mask_long_output. None: taken from the vocabulary.",
        role="model",
        lower_bound=0,
    )
    sep_token_id: int | None = option(
        None,
        "Id of the SEP token, for --mask_long_output. None: taken from the vocabulary.",
        role="model",
        lower_bound=0,
    )

    def __post_init__(self):
        super().__post_init__()
        from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

        if self.spm_model_file and not encoders.has_global_input(self.encoder_config):
            raise ValueError(
                f"--spm_model_file={self.spm_model_file}: a page's sentence pieces have the "
                "special tokens of the authors' ETC, not those of "
                f"{self.encoder_config.model_type!r}. "
                "Take a model with word pieces, such as one that is initialized from a BERT."
            )

    def features(self, tokenizer):
        """The feature settings at inference."""
        return NqInputConfig.for_tokenizer(
            tokenizer, **options.shared(NqInputConfig, self), is_training=False
        )

    def decoding(self):
        """The decoding settings."""
        return DecodingConfig(**options.shared(DecodingConfig, self))
