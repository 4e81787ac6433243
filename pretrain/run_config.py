"""What a run is told beside the training options, as flags."""

import dataclasses
import functools
import math
import typing

from etcmodel.finetuning.config import model_tokenizer
from etcmodel.models import presets
from etcmodel.options import (
    DataOptions,
    LengthOptions,
    ModelOptions,
    ProgramFlags,
    VocabularyOptions,
    option,
)
from etcmodel.training import TrainingConfig

from .config import MaskingConfig, MaskingOptions

if typing.TYPE_CHECKING:
    from etcmodel.models import encoders  # With TensorFlow, which takes seconds to import.

__all__ = ["DEFAULTS", "PretrainConfig", "ProgramOptions", "option_flags"]


# Paper, section 4.1 and appendix C; 63,000 steps of 512 windows are 33 epochs of its data.
DEFAULTS = {
    "optimizer": "lamb",
    "learning_rate": math.sqrt(8) * 1e-3,
    "train_batch_size": 512,
    "num_train_epochs": 33.0,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainConfig(LengthOptions, VocabularyOptions, MaskingOptions, DataOptions):
    """Everything about a run beside the training options; each field's help says what it means.

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
    help_texts = {"eval_data": "TFRecords of held-out text, wildcards allowed."}
    removed_options = {}

    encoder_config: "encoders.EncoderConfig"
    mlm_weight: float = option(
        0.8, "Weight of the masked language model's loss.", role="training", lower_bound=0.0
    )
    cpc_weight: float = option(
        0.2,
        "Weight of the loss of contrastive predictive coding. 0: no sentence is masked.",
        role="training",
        lower_bound=0.0,
    )
    gather_negatives: bool = option(
        True,
        "Contrast sentences with those of all devices. Must be off for several devices with "
        "gradient accumulation or --jit_compile.",
        role="training",
    )

    @property
    def use_cpc(self):
        """Whether sentences are masked and predicted: bool."""
        return self.cpc_weight > 0 and self.cpc_share > 0

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer` of the vocabulary files.

        Raises:
            ValueError: if there is none, or it has not as many entries as the model.
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
        """What the TFRecords must agree with: `RecordConfig`."""
        from . import inputs  # With TensorFlow, which takes seconds to import.

        return inputs.RecordConfig.of_run(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramOptions(ModelOptions):
    """What the program does, and with which model."""

    run_mode: str = option("train", "What to do.", choices=("train", "evaluate"))
    preset: str | None = option(
        None,
        "A model of the paper, with the hard g2l mask, in place of --model_config_file.",
        choices=tuple(sorted(presets.PRESETS)),
    )


_SECTIONS = {
    "program": ProgramOptions,
    "training": TrainingConfig,
    "task": PretrainConfig,
}


def option_flags(flag_values):
    """The `ProgramFlags` of the training's options, pre-training's and the program's own."""
    return ProgramFlags(_SECTIONS, flag_values, defaults=DEFAULTS)
