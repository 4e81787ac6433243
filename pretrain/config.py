"""The options of pre-training: of its features, and of a run."""

import dataclasses
import functools
import math
import types
import typing

from etcmodel.finetuning.command_line import ProgramOptions as FinetuningOptions
from etcmodel.finetuning.config import check_positions, model_tokenizer
from etcmodel.models import presets, systems
from etcmodel.options import (
    DataOptions,
    LengthOptions,
    Options,
    VocabularyOptions,
    changed,
    option,
)
from etcmodel.text import sentence_splitting

from . import program_options

if typing.TYPE_CHECKING:
    from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

__all__ = [
    "DEFAULTS",
    "SENTENCES",
    "TEXT",
    "MaskingConfig",
    "MaskingOptions",
    "PretrainConfig",
    "PretrainInputConfig",
    "ProgramOptions",
    "WindowOptions",
    "defaults_of",
    "is_of_text",
    "option_flags",
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
        "joins documents and cuts them into full windows (all other systems) and ignores the "
        "options for sentences.",
        role="features",
        choices=WINDOWS,
    )
    fixed_block_len: int | None = option(
        None,
        "Number of long tokens per global token, in place of sentences (the paper's ablation with "
        "fixed blocks has 97). None: one global token per sentence.",
        role="features",
        lower_bound=1,
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
        "How text is split into sentences: punkt (as NLTK does, for English), simple (at ., ! or ? "
        "before white space), or multilingual (there, and at the full stops of other scripts, such "
        "as those of Chinese).",
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
    """Settings of `features.make_windows`.

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
    """What is masked, and how much of it (paper, appendices B and C)."""

    mlm_share: float = option(
        0.15,
        "Fraction of the tokens outside masked sentences that are masked and predicted.",
        role="training",
        lower_bound=0,
        upper_bound=1,
    )
    whole_words: bool = option(
        True,
        "Mask all tokens of a word or none, as ETC's paper does. Off by default for windows of "
        "text: the papers of their models mask tokens one by one, as BERT's and RoBERTa's do.",
        role="training",
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
    cpc_global_token_id: int | None = option(
        None,
        "Id of the global token of a sentence that is masked as a whole; 2 in the authors' code. "
        "None: the id of all sentences.",
        role="training",
        lower_bound=0,
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


# Paper, section 4.1 and appendix C; 63,000 steps of 512 windows are 33 epochs of its data.
DEFAULTS = {
    "optimizer": "lamb",
    "learning_rate": math.sqrt(8) * 1e-3,
    "train_batch_size": 512,
    "num_train_epochs": 33.0,
}
_OF_TEXT = {"windows": TEXT, "mlm_weight": 1.0, "cpc_weight": 0.0, "whole_words": False}


def defaults_of(model_type):
    """The defaults for a model type that replace those of flags: dict from name to value."""
    return {**_OF_TEXT, **systems.find(model_type).pretraining} if is_of_text(model_type) else {}


def is_of_text(model_type):
    """Whether models of a type, which may be any value, are pre-trained on windows of text only."""
    system = systems.find(model_type)
    return system is not None and system.masked_lm is not None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainConfig(LengthOptions, VocabularyOptions, MaskingOptions, DataOptions):
    """The options of a run besides the training options; the help of each field describes it.

    Attributes:
        encoder_config: `EncoderConfig`.
        removed_options: see `finetuning.FinetuningConfig`.
    """

    aliases = {
        "train_tf_examples_filepattern": "train_data",
        "num_train_tf_examples": "num_train_examples",
        "eval_tf_examples_filepattern": "eval_data",
        "max_long_seq_length": "long_seq_length",
        "max_global_seq_length": "global_seq_length",
    }
    help_texts = {
        "eval_data": "TFRecords of held-out text, wildcards allowed.",
    }
    removed_options = {}
    proposed_by_records = ()

    encoder_config: "encoders.EncoderConfig"
    windows: str = changed(WindowOptions, "windows")
    trainable: str = option(
        "all",
        "What to train: all weights, or only the position embeddings, for example of a model "
        "initialized from BERT or RoBERTa and extended to longer texts.",
        role="training",
        choices=("all", "positions"),
    )
    mlm_weight: float = option(
        0.8, "Weight of the masked language modeling (MLM) loss.", role="training", lower_bound=0.0
    )
    cpc_weight: float = option(
        0.2,
        "Weight of the contrastive predictive coding (CPC) loss. 0: no sentence is masked.",
        role="training",
        lower_bound=0.0,
    )
    cpc_warmup_steps: int = option(
        0,
        "Number of steps over which the weight of the CPC loss rises from 0.",
        role="training",
        lower_bound=0,
    )
    cpc_projection_size: int = option(
        0,
        "Size of the sentence projections that CPC compares by cosine similarity. 0: a bilinear "
        "form of the sentences' global tokens, as in the paper.",
        role="training",
        lower_bound=0,
    )
    cpc_temperature: float = option(
        1.0,
        "Temperature that the CPC logits are divided by.",
        role="training",
        lower_bound=0.0,
    )
    gather_negatives: bool = option(
        True,
        "Use the sentences of all devices as negatives. With CPC, must be off for several devices "
        "with gradient accumulation or --jit_compile.",
        role="training",
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.cpc_temperature:
            raise ValueError("`cpc_temperature` must be above 0.")
        model_type = self.encoder_config.model_type
        is_text = is_of_text(model_type)
        if not (self.mlm_share or self.use_cpc):
            raise ValueError(
                f"--mlm_share={self.mlm_share} without contrastive predictive coding leaves "
                "nothing to learn from."
            )
        if is_text and self.use_cpc:
            raise ValueError(
                f"--cpc_weight={self.cpc_weight}: contrastive predictive coding is of the global "
                f"tokens of ETC; a model of type {model_type!r} has none. Leave it out."
            )
        self._check_cpc_global_token()
        if (self.windows == TEXT) != is_text:
            raise ValueError(
                f"--windows={self.windows}: a model of type {model_type!r} needs records made with "
                f"--windows={TEXT if is_text else SENTENCES}. Preprocess again."
            )
        check_positions(self.encoder_config, self.long_seq_length)

    def _check_cpc_global_token(self):
        given, size = self.cpc_global_token_id, self.encoder_config.vocab_size
        if given is not None and not (self.use_cpc and given < size):
            raise ValueError(
                f"--cpc_global_token_id={given} must be below the model's vocab_size={size}."
                if self.use_cpc
                else f"--cpc_global_token_id={given}: without contrastive predictive coding no "
                "sentence is masked as a whole. Leave it out."
            )

    @property
    def use_cpc(self):
        """Whether sentences are masked and predicted: bool."""
        return self.cpc_weight > 0 and self.cpc_share > 0

    @property
    def has_absolute_positions(self):
        """Whether ETC has absolute positions, as when initialized from BERT: bool."""
        # Only ETC has this entry.
        return getattr(self.encoder_config, "max_absolute_position_embeddings", 0) > 0

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer` of the vocabulary files.

        Raises:
            ValueError: if there is none, or its size differs from the model's.
        """
        return model_tokenizer(self)

    @functools.cached_property
    def masking(self):
        """The `MaskingConfig`."""
        return MaskingConfig.for_tokenizer(
            self.tokenizer,
            long_seq_length=self.long_seq_length,
            global_seq_length=self.global_seq_length,
            mlm_share=self.mlm_share,
            whole_words=self.whole_words,
            cpc_share=self.cpc_share if self.use_cpc else 0.0,
            max_cpc_sentence_length=self.max_cpc_sentence_length,
            cpc_global_token_id=self.cpc_global_token_id,
        )

    def records(self):
        """The format that the TFRecords must have: `RecordConfig`."""
        from . import task  # Imports TensorFlow, which takes seconds.

        return task.RecordConfig.of_run(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramOptions(program_options.PresetOptions):
    """The mode and the model of the program."""

    needed = types.MappingProxyType(
        {
            "train": ("output_dir", "preset", "train_data", "vocab_file"),
            "evaluate": ("output_dir", "eval_data"),
            "continuous_eval": ("output_dir", "eval_data"),
            "save_pretrained": ("output_dir",),
        }
    )

    run_mode: str = changed(
        program_options.PresetOptions,
        "run_mode",
        choices=("train", "evaluate", "continuous_eval", "save_pretrained"),
    )
    preset: str | None = changed(
        program_options.PresetOptions,
        "preset",
        help_text=("Model of the ETC paper, in place of --model_config_file."),
        choices=tuple(sorted(presets.PRESETS)),
        example="etc_base",
    )
    eval_timeout: float | None = changed(FinetuningOptions, "eval_timeout")
    pretrained_dir: str | None = changed(FinetuningOptions, "pretrained_dir")
    do_lower_case: bool | None = option(
        None,
        "In mode save_pretrained: whether the model's text is lower-cased (WordPiece only). None: "
        "as in the training records.",
        group="serving",
    )
    copy_local_to_global: bool = option(
        True,
        "In mode save_pretrained: copy Longformer's projections for local tokens to those for "
        "global tokens, which pre-training leaves untrained, as it has no global tokens.",
        group="serving",
    )


def option_flags(flag_values):
    """The `ProgramFlags` of the training's options, pre-training's and the program's own."""
    return program_options.option_flags(ProgramOptions, PretrainConfig, DEFAULTS, flag_values)
