"""Pre-training as a task for `etcmodel.training`."""

import functools

from etcmodel import finetuning, training
from etcmodel.finetuning import trained_run
from etcmodel.models import initialization

from . import evaluate, inputs, loss, model
from .run_config import PretrainConfig

__all__ = ["PretrainConfig", "PretrainTask"]


class PretrainTask(training.Task):
    """Trains and evaluates; the work is done by the modules beside this one.

    Args:
        config: `PretrainConfig`.
    """

    best_metric = "loss"
    higher_is_better = False

    def __init__(self, config):
        self.config = config
        self.kept_files = {}

    @functools.cached_property
    def vocab_sha256(self):
        """Digest of the vocabulary: str."""
        return self.config.tokenizer.source_sha256()

    @functools.cached_property
    def num_train_examples(self):
        return self.config.num_train_examples or training.count_examples(self.config.train_data)

    def build_model(self):
        pretrain_model = model.PretrainModel(
            self.config.encoder_config, use_cpc=self.config.use_cpc
        )
        pretrain_model.build()
        if self.config.initialization == "mimetic":
            initialization.mimetic_initialization(pretrain_model.etc_model)
        return pretrain_model

    def loss(self, outputs, features):
        return loss.pretraining_loss(
            outputs,
            features,
            mlm_weight=self.config.mlm_weight,
            cpc_weight=self.config.cpc_weight,
            gather_negatives=self.config.gather_negatives,
        )

    def train_dataset(self, request):
        config = self.config
        inputs.check_records(config.train_data, config.records(), config.tokenizer)
        return inputs.make_train_dataset(
            config.train_data, config.records(), config.masking, request
        )

    def eval_dataset(self, batch_size):
        config = self.config
        if not config.eval_data:
            return None
        inputs.check_records(config.eval_data, config.records(), config.tokenizer)
        return inputs.make_eval_dataset(
            config.eval_data, config.records(), config.masking, batch_size
        )

    def check_data(self):
        for pattern in filter(None, (self.config.train_data, self.config.eval_data)):
            finetuning.find_bad_record(pattern, self.config.records(), need_labels=True)

    def evaluate(self, predictions):
        return evaluate.metrics(
            predictions, mlm_weight=self.config.mlm_weight, cpc_weight=self.config.cpc_weight
        )

    def run_config(self):
        return {
            **trained_run.run_options(self.config),
            "vocab_sha256": [self.vocab_sha256],
        }

    def run_config_defaults(self):
        return trained_run.run_option_defaults(PretrainConfig)

    def run_notes(self):
        return trained_run.run_notes(self.config)

    def run_files(self):
        return self.kept_files
