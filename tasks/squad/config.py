"""The options of features, and of a run besides the training options; names are those of BERT."""

import dataclasses
import types

from etcmodel import options
from etcmodel.finetuning import (
    FinetuningConfig,
    ProcessorFeatureOptions,
    QuestionOptions,
    SentenceOptions,
)
from etcmodel.options import FeatureOptions, Options, changed, option

__all__ = [
    "ArrangementOptions",
    "SquadConfig",
    "SquadDecodingOptions",
    "SquadExampleOptions",
    "SquadFeatureOptions",
    "SquadInputConfig",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArrangementOptions(Options):
    """How HotpotQA's paragraphs become one context."""

    gold_separated: bool = option(
        False,
        "For HotpotQA's files: one paragraph with supporting facts is among the first three, the "
        "other among the last three, where the file tells them (Gupta and Berant 2020, section "
        "4.4).",
        role="features",
    )
    repeat_question: bool = option(
        False,
        "For HotpotQA's files: repeat the question after each paragraph, so that every chunk of "
        "an encoder without memory has it.",
        role="features",
    )
    tag_facts: bool = option(
        False,
        "For HotpotQA's training files: also learn which tokens are of supporting facts.",
        role="features",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadFeatureOptions(ArrangementOptions, QuestionOptions, SentenceOptions):
    """Options that features, records and model must agree on."""

    former_values = types.MappingProxyType({"sentence_splitter": "multilingual"})

    long_seq_length: int = changed(FeatureOptions, "long_seq_length", default=384)
    global_seq_length: int = changed(FeatureOptions, "global_seq_length", default=128)
    doc_stride: int = option(
        128,
        "Tokens from the start of a window of a long context to the start of the next one.",
        role="features",
        lower_bound=1,
    )
    max_query_length: int = option(
        64,
        "Maximum length of a question, in tokens; the end of a longer one is cut.",
        role="features",
        lower_bound=1,
    )
    version_2_with_negative: bool | None = option(
        None,
        "Whether questions may have no answer, as in SQuAD 2.0. None: preprocess looks for one in "
        "the training data.",
        role="features",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadDecodingOptions(Options):
    """How answers are chosen."""

    max_answer_length: int = option(
        30, "Maximum length of an answer, in tokens.", role="decoding", lower_bound=1
    )
    n_best_size: int = option(
        20, "Number of answers to list for each question.", role="decoding", lower_bound=1
    )
    null_score_diff_threshold: float = option(
        0.0,
        "With questions without an answer: the answer is empty if the score of no answer minus "
        "that of the best answer exceeds this. Evaluation prints the best value for F1, "
        "best_f1_thresh.",
        role="decoding",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadExampleOptions(SquadFeatureOptions):
    """Further options of preprocessing."""

    is_training: bool = option(
        True, "Create labels. If false, keep the texts instead.", role="features"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadInputConfig(SquadExampleOptions, ProcessorFeatureOptions):
    """Settings of `features.make_features`."""

    question_globals = "tokens"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadConfig(
    SquadFeatureOptions, SquadDecodingOptions, options.PaddingOptions, FinetuningConfig
):
    """The options of a run besides the training options; the help of each field describes it."""

    help_texts = {
        "eval_gold": "SQuAD's or HotpotQA's JSON file with the answers of the questions to "
        "evaluate on.",
        "predictions_file": "Official JSON; beside it nbest_predictions.json and, with questions "
        "without an answer, null_odds.json. None: predictions.json in --output_dir.",
    }
    input_class = SquadInputConfig
    not_of_evaluation = ("doc_stride", "version_2_with_negative", "tag_facts")

    question_as_memory: bool = option(
        False,
        "GMAT's memory is the question's first tokens in place of tokens of its own (Gupta and "
        "Berant 2020, section 4.4).",
        role="model",
    )
    facts_loss_weight: float = option(
        1.0,
        "Weight of the loss of tokens of supporting facts, with --tag_facts.",
        role="training",
        lower_bound=0,
    )
