"""The options of a run, besides the training options."""

import dataclasses
import functools
import math
import types
import typing

from etcmodel.finetuning.config import check_positions, model_tokenizer
from etcmodel.finetuning.program_options import ProgramOptions as FinetuningOptions
from etcmodel.models import presets, systems
from etcmodel.options import (
    ANY_VOCABULARY,
    DataOptions,
    LengthOptions,
    VocabularyOptions,
    changed,
    option,
)

from . import program_options
from .config import SENTENCES, TEXT, MaskingConfig, MaskingOptions, WindowOptions

if typing.TYPE_CHECKING:
    from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

__all__ = ["DEFAULTS", "PretrainConfig", "ProgramOptions", "defaults_of", "option_flags"]


# Paper, section 4.1 and appendix C; 63,000 steps of 512 windows are 33 epochs of its data.
DEFAULTS = {
    "optimizer": "lamb",
    "learning_rate": math.sqrt(8) * 1e-3,
    "train_batch_size": 512,
    "num_train_epochs": 33.0,
}
_OF_TEXT = {"windows": TEXT, "mlm_weight": 1.0, "cpc_weight": 0.0}


def defaults_of(model_type):
    """The defaults for a model type that replace those of flags: dict from name to value."""
    return {**_OF_TEXT, **systems.find(model_type).pretraining} if _is_of_text(model_type) else {}


def _is_of_text(model_type):
    """Whether models of a type are pre-trained on windows of text only."""
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
        "vocab_file": ANY_VOCABULARY,
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
        "Use the sentences of all devices as negatives. Must be off for several devices with "
        "gradient accumulation or --jit_compile.",
        role="training",
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.cpc_temperature:
            raise ValueError("`cpc_temperature` must be above 0.")
        model_type = self.encoder_config.model_type
        is_text = _is_of_text(model_type)
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
        if (self.windows == TEXT) != is_text:
            raise ValueError(
                f"--windows={self.windows}: a model of type {model_type!r} needs records made with "
                f"--windows={TEXT if is_text else SENTENCES}. Preprocess again."
            )
        check_positions(self.encoder_config, self.long_seq_length)

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
            cpc_share=self.cpc_share if self.use_cpc else 0.0,
            max_cpc_sentence_length=self.max_cpc_sentence_length,
        )

    def records(self):
        """The format that the TFRecords must have: `RecordConfig`."""
        from . import inputs  # Imports TensorFlow, which takes seconds.

        return inputs.RecordConfig.of_run(self)


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
        help_text=(
            "Model size from the ETC paper, with the hard g2l mask, in place of "
            "--model_config_file."
        ),
        choices=tuple(sorted(presets.PRESETS)),
        example="etc_base",
    )
    eval_timeout: float | None = changed(FinetuningOptions, "eval_timeout")
    pretrained_dir: str | None = option(
        None,
        "Folder to write in mode save_pretrained. None: pretrained in --output_dir.",
        group="serving",
    )
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
