"""Pre-training as a task for `etcmodel.training`."""

import functools
import re

from etcmodel import finetuning
from etcmodel.checkpoints import names as names_lib
from etcmodel.finetuning import options_task

from . import evaluate, inputs, loss, model, text_model
from .config import TEXT
from .run_config import PretrainConfig

__all__ = ["PretrainConfig", "PretrainTask"]

_TABLES = ("position_embeddings", "quotient_embeddings", r"position_emb_lookup_(?:long|global)")
_POSITIONS = re.compile(rf"(?:.*/)?(?:{'|'.join(_TABLES)})/embedding_table")


class PretrainTask(options_task.RecordsTask):
    """Trains and evaluates; the work is done by the modules beside this one.

    Args:
        config: `PretrainConfig`.
    """

    config_class = PretrainConfig
    best_metric = "loss"
    higher_is_better = False

    @functools.cached_property
    def vocab_sha256(self):
        """Digest of the vocabulary: str."""
        return self.config.tokenizer.source_sha256()

    def make_model(self):
        encoder_config = self.config.encoder_config
        if self.config.windows == TEXT:
            return text_model.make_text_model(encoder_config)
        return model.PretrainModel(
            encoder_config,
            use_cpc=self.config.use_cpc,
            cpc_projection_size=self.config.cpc_projection_size,
            cpc_temperature=self.config.cpc_temperature,
        )

    def trained_variables(self, model):
        variables = super().trained_variables(model)
        if self.config.trainable == "all":
            return variables
        inside = names_lib.encoder_variables(model)
        tables = {id(variable) for name, variable in inside.items() if _POSITIONS.fullmatch(name)}
        if not tables:
            kind = self.config.encoder_config.model_type
            raise ValueError(
                f"--trainable={self.config.trainable}: a model of type {kind!r} has no tables of "
                "positions."
            )
        return [variable for variable in variables if id(variable) in tables]

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
        batches = inputs.make_train_dataset(
            config.train_data, config.records(), config.masking, request
        )
        return inputs.with_cpc_weight_shares(batches, config.cpc_warmup_steps, request)

    def eval_dataset(self, batch_size):
        config = self.config
        if not config.eval_data:
            return None
        inputs.check_records(config.eval_data, config.records(), config.tokenizer)
        inputs.is_lower_case([*filter(None, [config.train_data]), config.eval_data])
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

    def run_notes(self):
        is_lower_case = inputs.is_lower_case(self.config.train_data)
        noted = {} if is_lower_case is None else {"do_lower_case": is_lower_case}
        return {**super().run_notes(), **noted}

    def run_config(self):
        return {**super().run_config(), "vocab_sha256": [self.vocab_sha256]}
