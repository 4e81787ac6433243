"""The options of a run on Natural Questions, besides the training options."""

import dataclasses

from etcmodel import finetuning, options

from .config import DecodingConfig, NqDecodingOptions, NqFeatureOptions, NqInputConfig

__all__ = ["NqConfig"]


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
    }

    eval_gold: str | None = finetuning.changed(
        finetuning.FinetuningConfig,
        "eval_gold",
        help_text=(
            "Annotations of the evaluation examples: Natural Questions files (wildcards allowed), "
            "or a file written by make_gold_cache."
        ),
        is_file=False,
    )
    stride: int = finetuning.changed(NqFeatureOptions, "stride", role="inference")
    curve_plot_file: str | None = finetuning.option(
        None,
        "PNG file for a plot of precision, recall and F1 by threshold, written during evaluation.",
        group="evaluation",
    )
    mask_long_output: bool = finetuning.option(
        False, "Allow answers to start and end only within the page.", role="model"
    )
    cls_token_id: int | None = finetuning.option(
        None,
        "Id of the CLS token, for --mask_long_output. None: taken from the vocabulary.",
        role="model",
        lower_bound=0,
    )
    sep_token_id: int | None = finetuning.option(
        None,
        "Id of the SEP token, for --mask_long_output. None: taken from the vocabulary.",
        role="model",
        lower_bound=0,
    )

    def records(self):
        from . import inputs  # Imports TensorFlow, which takes seconds.

        return inputs.RecordConfig.of_run(self)

    def features(self, tokenizer):
        """The feature settings at inference."""
        return NqInputConfig.for_tokenizer(
            tokenizer, **options.shared(NqInputConfig, self), is_training=False
        )

    def decoding(self):
        """The decoding settings."""
        return DecodingConfig(**options.shared(DecodingConfig, self))
