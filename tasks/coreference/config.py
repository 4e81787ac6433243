"""The options of features and of the model, and of a run besides the training options."""

import dataclasses

from etcmodel import finetuning, options
from etcmodel.options import FeatureOptions, WindowOptions, changed, option

__all__ = ["CoreferenceConfig", "CoreferenceFeatureOptions", "CoreferenceInputConfig"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CoreferenceFeatureOptions(WindowOptions):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(FeatureOptions, "long_seq_length")
    global_seq_length: int = changed(FeatureOptions, "global_seq_length", default=430)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CoreferenceInputConfig(CoreferenceFeatureOptions, finetuning.ProcessorFeatureOptions):
    """Settings of `features.make_features`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CoreferenceConfig(
    CoreferenceFeatureOptions, options.PaddingOptions, finetuning.FinetuningConfig
):
    """The options of a run besides the training options; the help of each field describes it.

    Defaults of the model are those of Joshi et al. 2019 (arXiv:1908.09091) for a base model.
    """

    help_texts = {
        "eval_gold": "None: the records of --eval_data have the clusters, too.",
        "input_file": "Raw file of the documents to resolve, in mode predict.",
        "predictions_file": "Where predictions go: a JSON object by id; or, if the name does not "
        "end in .json, a file in the format of CoNLL-2012. None: predictions.json in --output_dir.",
    }
    not_needed = ("eval_gold",)
    input_class = CoreferenceInputConfig
    records_hold = "clusters"

    max_span_width: int = option(
        30, "Most words of a mention; longer ones are never found.", role="model", lower_bound=1
    )
    top_span_ratio: float = option(
        0.4,
        "How many spans are kept as possible mentions, ÷ words of the document.",
        role="model",
        lower_bound=0.0,
        upper_bound=1.0,
    )
    max_top_antecedents: int = option(
        50, "How many earlier spans each span is compared with.", role="model", lower_bound=1
    )
    coref_depth: int = option(
        2,
        "How often antecedents are scored: from the second time on, with spans that have taken "
        "something over from their antecedents. 1: no such higher-order inference.",
        role="model",
        lower_bound=1,
    )
    ffnn_size: int = option(
        1000, "Units of the layers that score mentions and pairs.", role="model", lower_bound=1
    )
    feature_size: int = option(
        20,
        "Units of the embeddings of widths, distances, speakers and genres.",
        role="model",
        lower_bound=1,
    )
    head_dropout: float = option(
        0.3,
        "Dropout rate above the encoder.",
        role="training",
        lower_bound=0.0,
        upper_bound=0.9,
    )
    head_rate_factor: float = option(
        10.0,
        "Learning rate of what is above the encoder ÷ --learning_rate.",
        role="training",
        lower_bound=0.0,
    )
