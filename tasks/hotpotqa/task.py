"""HotpotQA as a task for `etcmodel.training`."""

import dataclasses

from etcmodel import finetuning

from . import decode, evaluate, examples, inputs, model
from .config import HotpotQAInputConfig

__all__ = ["HotpotQaConfig", "HotpotQaTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQaConfig(finetuning.FinetuningConfig):
    """Everything about a run beside the training options; each field's help says what it means."""

    eval_pattern: str | None = finetuning.option(
        None,
        "TFRecords to evaluate on (preprocess with --is_training=false), wildcards allowed.",
        flag="predict_tf_examples_filepattern",
    )
    gold_file: str | None = finetuning.option(
        None,
        "HotpotQA JSON with the answers of those examples.",
        flag="predict_gold_json_file",
        is_file=True,
    )
    input_file: str | None = finetuning.option(
        None,
        "Raw HotpotQA JSON of the questions to answer, in mode predict.",
        flag="predict_input_json_file",
        is_file=True,
    )
    predictions_file: str | None = finetuning.option(
        None,
        "Where predictions go, in the official format. None: predictions.json in --output_dir.",
    )
    answer_encoding_method: str = finetuning.option(
        "span",
        "Whether an answer is found by its first and last token or by a BIO id for each token.",
        role="model",
        choices=("span", "bio"),
    )
    flat_sequence: bool = finetuning.option(
        False, "Ignore paragraphs in masks and labels (paper, table 3).", role="model"
    )
    supporting_fact_threshold: float = finetuning.option(
        0.5, "Least probability of a supporting fact, from 0 to 1.", role="decoding"
    )
    max_answer_length: int = finetuning.option(30, "Longest answer, in tokens.", role="decoding")

    def __post_init__(self):
        self.decoding()  # Refuses options outside their range.

    def records(self):
        return inputs.RecordConfig(
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            vocab_size=self.etc_config.vocab_size,
            segment_vocab_size=self.etc_config.segment_vocab_size,
            answer_encoding_method=self.answer_encoding_method,
        )

    def features(self, tokenizer):
        """How raw examples become features, at inference."""
        return HotpotQAInputConfig.for_tokenizer(
            tokenizer,
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            answer_encoding_method=self.answer_encoding_method,
            release_compatible=self.release_compatible,
            is_training=False,
        )

    def decoding(self):
        """How outputs become answers."""
        return decode.DecodingConfig(
            answer_encoding_method=self.answer_encoding_method,
            supporting_fact_threshold=self.supporting_fact_threshold,
            max_answer_length=self.max_answer_length,
            do_lower_case=self.do_lower_case,
            release_compatible=self.release_compatible,
        )


class HotpotQaTask(finetuning.FinetuningTask):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `HotpotQaConfig`.
    """

    name = "hotpotqa"
    title = "HotpotQA"
    config_class = HotpotQaConfig
    best_metric = "joint_f1"

    def make_model(self):
        return model.HotpotQaModel(
            self.config.etc_config,
            answer_encoding_method=self.config.answer_encoding_method,
            flat_sequence=self.config.flat_sequence,
        )

    def loss(self, outputs, features):
        return model.loss(outputs, features)

    def read_examples(self, path, check=None):
        return examples.read_examples(path, check)

    def decode(self, outputs, examples):
        return decode.generate_predictions(
            outputs, examples, self.tokenizer, self.config.decoding()
        )

    def metrics(self, examples, predictions):
        return {
            **evaluate.metrics(examples, predictions),
            **evaluate.exact_match_counts(examples, predictions),
        }

    def num_predictions(self, predictions):
        return len(predictions["answer"])
