"""The options of a run on HotpotQA, besides the training options."""

import dataclasses

from etcmodel import finetuning, options

from .config import (
    DecodingConfig,
    HotpotQADecodingOptions,
    HotpotQAFeatureOptions,
    HotpotQAInputConfig,
)

__all__ = ["HotpotQaConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQaConfig(
    HotpotQAFeatureOptions,
    HotpotQADecodingOptions,
    options.PaddingOptions,
    finetuning.FinetuningConfig,
):
    """The options of a run besides the training options; the help of each field describes it."""

    aliases = {
        "train_tf_examples_filepattern": "train_data",
        "num_train_tf_examples": "num_train_examples",
        "predict_tf_examples_filepattern": "eval_data",
        "predict_gold_json_file": "eval_gold",
        "predict_input_json_file": "input_file",
        "max_long_seq_length": "long_seq_length",
        "max_global_seq_length": "global_seq_length",
    }
    help_texts = {
        "eval_gold": "HotpotQA JSON with the answers of the examples to evaluate on.",
    }

    not_of_evaluation = ("answer_encoding_method",)

    flat_sequence: bool = finetuning.option(
        False,
        "Flat input: ignore paragraphs in masks and relative labels (paper, table 3).",
        role="model",
    )

    def records(self):
        from . import inputs  # Imports TensorFlow, which takes seconds.

        # The release finds answers by the words of their pieces.
        needs_words = self.release_compatible and not self.spm_model_file
        return inputs.RecordConfig.of_run(self, needs_words=needs_words)

    def features(self, tokenizer):
        """The feature settings at inference."""
        return HotpotQAInputConfig.for_tokenizer(
            tokenizer, **options.shared(HotpotQAInputConfig, self), is_training=False
        )

    def decoding(self):
        """The decoding settings."""
        return DecodingConfig(
            **options.shared(DecodingConfig, self), do_lower_case=self.do_lower_case
        )
