"""HotpotQA as a task for `etcmodel.training`."""

import dataclasses
import functools
import json
import os

import tensorflow as tf

from etcmodel import training
from etcmodel.models import initialization, modeling, tokenization

from . import decode, evaluate, examples, inputs, model
from .config import HotpotQAInputConfig

__all__ = ["HotpotQaConfig", "HotpotQaTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class HotpotQaConfig:
    """Everything about a run beside the training options.

    Attributes:
        etc_config: `EtcConfig`.
        max_long_seq_length, max_global_seq_length: int. Tokens, padding included.
        answer_encoding_method: 'span' or 'bio'.
        flat_sequence: bool. Ignore paragraphs (paper, table 3).
        supporting_fact_threshold: float in [0, 1]. Least probability of a supporting fact.
        max_answer_length: int. Tokens.
        release_compatible: bool. Decode with the faults of the authors' release.
        vocab_file, spm_model_file: path or None. The latter wins.
        do_lower_case: bool. For word pieces.
        train_pattern, eval_pattern: file patterns of TFRecords, or None.
        num_train_examples: int or None. None: the records are counted.
        initialization: 'random', or 'mimetic' (`mimetic_initialization`).
        gold_json_file: HotpotQA JSON with the examples of `eval_pattern`, or None.
        predictions_file: where evaluations write their predictions, or None.
    """

    etc_config: modeling.EtcConfig
    max_long_seq_length: int = 4096
    max_global_seq_length: int = 230
    answer_encoding_method: str = "span"
    flat_sequence: bool = False
    supporting_fact_threshold: float = 0.5
    max_answer_length: int = 30
    release_compatible: bool = False
    vocab_file: str | None = None
    spm_model_file: str | None = None
    do_lower_case: bool = True
    train_pattern: str | None = None
    eval_pattern: str | None = None
    num_train_examples: int | None = None
    initialization: str = "random"
    gold_json_file: str | None = None
    predictions_file: str | None = None

    def records(self):
        """What the TFRecords must agree with."""
        return inputs.RecordConfig(
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            vocab_size=self.etc_config.vocab_size,
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

    def tokenizer(self):
        """The `FullTokenizer` of the vocabulary files.

        Raises:
            ValueError: if there is none, or it has more entries than the model.
        """
        if not (self.vocab_file or self.spm_model_file):
            raise ValueError("Either --vocab_file or --spm_model_file must be given.")
        tokenizer = tokenization.FullTokenizer(
            self.vocab_file, self.do_lower_case, spm_model_file=self.spm_model_file or None
        )
        if len(tokenizer.vocab) > self.etc_config.vocab_size:
            raise ValueError(
                f"The vocabulary {tokenizer.source_file} has {len(tokenizer.vocab)} entries, the "
                f"model's `vocab_size` is {self.etc_config.vocab_size}."
            )
        return tokenizer


class HotpotQaTask(training.Task):
    """Trains, evaluates and decodes; the work is done by the modules beside this one.

    Args:
        config: `HotpotQaConfig`.
    """

    best_metric = "joint_f1"

    def __init__(self, config):
        self.config = config

    @functools.cached_property
    def num_train_examples(self):
        """Number of training records."""
        return self.config.num_train_examples or training.count_examples(self.config.train_pattern)

    def build_model(self):
        task_model = model.HotpotQaModel(
            self.config.etc_config,
            answer_encoding_method=self.config.answer_encoding_method,
            flat_sequence=self.config.flat_sequence,
        )
        task_model.build()
        if self.config.initialization == "mimetic":
            initialization.mimetic_initialization(task_model.etc_model)
        return task_model

    def loss(self, outputs, features):
        return model.loss(outputs, features)

    def train_dataset(self, request):
        records = self.config.records()
        inputs.check_records(self.config.train_pattern, records, need_labels=True)
        return inputs.make_train_dataset(self.config.train_pattern, records, request)

    def eval_dataset(self, batch_size):
        if not self.config.eval_pattern:
            return None
        records = self.config.records()
        inputs.check_records(self.config.eval_pattern, records, need_labels=False)
        return inputs.make_eval_dataset(self.config.eval_pattern, records, batch_size)

    def evaluate(self, predictions):
        gold = list(examples.read_examples(self.config.gold_json_file))
        predicted = decode.generate_predictions(
            predictions, gold, self.config.tokenizer(), self.config.decoding()
        )
        if self.config.predictions_file:
            write_json(self.config.predictions_file, predicted)
        return evaluate.metrics(gold, predicted)

    def run_config(self):
        """The options that decide the weights."""
        names = (
            "max_long_seq_length",
            "max_global_seq_length",
            "answer_encoding_method",
            "flat_sequence",
            "train_pattern",
            "num_train_examples",
            "initialization",
        )
        return {
            "etc_config": self.config.etc_config.to_dict(),
            **{name: getattr(self.config, name) for name in names},
        }


def write_json(path, value):
    """Writes JSON; the file appears only when it is complete."""
    tf.io.gfile.makedirs(os.path.dirname(os.path.abspath(path)))
    with tf.io.gfile.GFile(f"{path}.tmp", "w") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
    tf.io.gfile.rename(f"{path}.tmp", path, overwrite=True)
