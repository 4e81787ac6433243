"""The options of features, and of a run besides the training options."""

import dataclasses

from etcmodel import options
from etcmodel.finetuning import (
    FinetuningConfig,
    ProcessorFeatureOptions,
    QuestionOptions,
    SentenceOptions,
)
from etcmodel.options import FeatureOptions, Options, WindowOptions, changed, option

__all__ = [
    "TriviaQaConfig",
    "TriviaQaDecodingOptions",
    "TriviaQaFeatureOptions",
    "TriviaQaInputConfig",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriviaQaFeatureOptions(SentenceOptions, QuestionOptions, WindowOptions):
    """Options that features, records and model must agree on."""

    long_seq_length: int = changed(FeatureOptions, "long_seq_length")
    global_seq_length: int = changed(FeatureOptions, "global_seq_length", default=430)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriviaQaEvidenceOptions(Options):
    """The location of the documents."""

    evidence_dir: str | None = option(
        None,
        "Folder of the evidence files, with the subfolders wikipedia and web, or only the one "
        "needed.",
        role="decoding",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriviaQaDecodingOptions(TriviaQaEvidenceOptions):
    """How answers are chosen."""

    max_answer_length: int = option(
        30, "Maximum length of an answer, in tokens.", role="decoding", lower_bound=1
    )
    answer_score: str = option(
        "best",
        "How the answer is chosen: by its best span, or by the highest sum of probabilities over "
        "its spans.",
        role="decoding",
        choices=("best", "sum"),
    )
    by_document: bool = option(
        False,
        "Answer from each document separately, under the id <question id>--<file name>: the "
        "official scheme for web pages.",
        role="decoding",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriviaQaExampleOptions(TriviaQaFeatureOptions, TriviaQaEvidenceOptions):
    """Further options of preprocessing."""

    is_training: bool = option(
        True,
        "Create labels and drop windows without an answer. If false, keep the texts instead.",
        role="features",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriviaQaInputConfig(TriviaQaExampleOptions, ProcessorFeatureOptions):
    """Settings of `features.make_features`."""

    question_globals = "tokens"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriviaQaConfig(
    TriviaQaFeatureOptions, TriviaQaDecodingOptions, options.PaddingOptions, FinetuningConfig
):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "TriviaQA's JSON file with the answers of the questions to evaluate on.",
        "predictions_file": "Official JSON; details beside it. None: predictions.json in the run.",
    }
    input_class = TriviaQaInputConfig
