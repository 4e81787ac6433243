"""Pre-training on arrays of windows of `topics`."""

import copy
import dataclasses

from etcmodel import training
from etcmodel.models.initialization import mimetic_initialization
from etcmodel.pretrain import config as pretrain_config
from etcmodel.pretrain import metrics, task
from etcmodel.pretrain import model as pretrain_model
from etcmodel.tools.ingredients import topics

__all__ = ["WindowsTask"]

_MLM_WEIGHT, _CPC_SHARE = 0.8, 0.1


class WindowsTask(training.HeadTask):
    """Pre-trains on arrays of windows.

    Args:
        encoder_config: `EtcConfig`.
        train, evaluation: dict of arrays, as of `topics.windows`.
        seed: int. Of the first weights.
        cpc_weight: float. Without it no sentence is masked in training.
        cpc_warmup_steps: int. Steps in which the weight rises from 0.
        **model_options: of `PretrainModel`.
    """

    def __init__(
        self,
        encoder_config,
        train,
        evaluation,
        *,
        seed,
        cpc_weight=0.2,
        cpc_warmup_steps=0,
        **model_options,
    ):
        super().__init__(None, (train, {}), (evaluation, {}), name="windows")
        self._encoder_config, self._seed = encoder_config, seed
        self._warmup_steps = cpc_warmup_steps
        self._weights = {"mlm_weight": _MLM_WEIGHT, "cpc_weight": cpc_weight}
        self._model_options = {"use_cpc": cpc_weight > 0, **model_options}
        mask = topics.MASK_TOKEN_ID
        self._masking = pretrain_config.MaskingConfig(
            mask_token_id=mask,
            special_token_ids=(0, 1, mask),
            random_token_ids=tuple(range(mask + 1, encoder_config.vocab_size)),
            long_seq_length=train["long_token_ids"].shape[1],
            global_seq_length=train["global_token_ids"].shape[1],
            cpc_share=_CPC_SHARE if cpc_weight else 0.0,
            max_cpc_sentence_length=topics.SENTENCE_LENGTH,
        )

    def without_masked_sentences(self):
        """A copy whose windows have masked tokens only: MLM is alike with and without CPC."""
        other = copy.copy(self)
        other._masking = dataclasses.replace(self._masking, cpc_share=0.0)
        return other

    def build_model(self):
        model = pretrain_model.PretrainModel(self._encoder_config, **self._model_options)
        model.build()
        mimetic_initialization(model.etc_model, self._seed)
        return model

    def loss(self, outputs, features):
        return pretrain_model.pretraining_loss(outputs, features, **self._weights)

    def train_dataset(self, request):
        batches = task.masked_train_batches(super().train_dataset(request), self._masking, request)
        return task.with_cpc_weight_shares(batches, self._warmup_steps, request)

    def eval_dataset(self, batch_size):
        batches = super().eval_dataset(batch_size)
        return task.masked_eval_batches(batches, self._masking, batch_size)

    def evaluate(self, predictions):
        return metrics.metrics(predictions, **self._weights)
