"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, OneInputOptions, changed, option

__all__ = ["InputConfig", "MajorityConfig", "MajorityExampleOptions", "MajorityOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MajorityOptions(OneInputOptions):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(
        FeatureOptions,
        "long_seq_length",
        default=512,
        help_text="Length of the sequences in tokens, including padding.",
    )
    pairs: int = option(
        1,
        "Number of pairs of numbers: tokens and tags range from 1 to twice this.",
        role="features",
        lower_bound=1,
    )

    @property
    def num_tags(self):
        """int."""
        return 2 * self.pairs


@dataclasses.dataclass(frozen=True, kw_only=True)
class MajorityExampleOptions(MajorityOptions):
    """Further options of preprocessing."""

    is_training: bool = option(True, "Reject sequences without tags.", role="features")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputConfig(MajorityExampleOptions, FeatureOptions):
    """Settings of `make_features`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MajorityConfig(MajorityOptions, options.PaddingOptions, finetuning.GmatFinetuningConfig):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "JSON lines with the tags of the sequences to evaluate on.",
        "predictions_file": "Where predictions go, as JSON {id: tags}. None: predictions.json in "
        "--output_dir.",
    }
    input_class = InputConfig
