"""Pre-training as a task for `etcmodel.training`."""

import dataclasses
import functools

from etcmodel import training
from etcmodel.finetuning import trained_run
from etcmodel.models import initialization, modeling, tokenization
from etcmodel.preprocessing.options import option

from . import evaluate, inputs, loss, model
from .config import MaskingConfig

__all__ = ["PretrainConfig", "PretrainTask"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """Everything about a run beside the training options; each field's help says what it means.

    Attributes:
        etc_config: `EtcConfig`.
        removed_options: see `finetuning.FinetuningConfig`.
    """

    removed_options = {}

    etc_config: modeling.EtcConfig
    train_pattern: str | None = option(
        None,
        "Training TFRecords of preprocess, wildcards allowed.",
        role="training",
        flag="train_tf_examples_filepattern",
    )
    num_train_examples: int | None = option(
        None,
        "Number of training windows. None: they are counted.",
        role="training",
        flag="num_train_tf_examples",
    )
    eval_pattern: str | None = option(
        None,
        "TFRecords of held-out text, wildcards allowed.",
        flag="eval_tf_examples_filepattern",
    )
    spm_model_file: str | None = option(
        None, "SentencePiece model. If it is given, --vocab_file is ignored.", is_file=True
    )
    vocab_file: str | None = option(None, "WordPiece vocabulary, one piece a line.", is_file=True)
    split_punctuation: bool = option(
        False,
        "Split text at punctuation before the SentencePiece model, as preprocess did.",
        role="features",
    )
    max_long_seq_length: int = option(
        4096, "Word pieces of a window; those of the records.", role="model", lower_bound=2
    )
    max_global_seq_length: int = option(
        230, "Sentences of a window; those of the records.", role="model", lower_bound=2
    )
    mlm_share: float = option(
        0.15, "Share of the tokens outside of masked sentences to be predicted.", role="training"
    )
    cpc_share: float = option(
        0.1, "Share of the sentences that are masked whole, to be predicted.", role="training"
    )
    mlm_weight: float = option(
        0.8, "Weight of the masked language model's loss.", role="training", lower_bound=0.0
    )
    cpc_weight: float = option(
        0.2,
        "Weight of the loss of contrastive predictive coding. 0: no sentence is masked.",
        role="training",
        lower_bound=0.0,
    )
    max_cpc_sentence_length: int = option(
        64,
        "Longest sentence, in word pieces, that is masked whole.",
        role="training",
        lower_bound=1,
    )
    gather_negatives: bool = option(
        True,
        "Contrast sentences with those of all devices. Must be off for several devices with "
        "gradient accumulation or --jit_compile.",
        role="training",
    )
    initialization: str = option(
        "random",
        "Weights of a new run without --init_checkpoint; mimetic (see "
        "etcmodel.models.initialization) lets small models learn from little data.",
        role="training",
        choices=("random", "mimetic"),
    )

    @property
    def use_cpc(self):
        """Whether sentences are masked and predicted: bool."""
        return self.cpc_weight > 0 and self.cpc_share > 0

    @functools.cached_property
    def tokenizer(self):
        """The `FullTokenizer` of the vocabulary files.

        Raises:
            ValueError: if there is none, or it has not as many entries as the model.
        """
        if not (self.vocab_file or self.spm_model_file):
            raise ValueError("Either --vocab_file or --spm_model_file must be given.")
        tokenizer = tokenization.FullTokenizer(
            self.vocab_file,
            spm_model_file=self.spm_model_file,
            split_punctuation=self.split_punctuation,
        )
        if len(tokenizer.vocab) > self.etc_config.vocab_size:
            raise ValueError(
                f"The vocabulary {tokenizer.source_file} has {len(tokenizer.vocab)} entries, the "
                f"model's `vocab_size` is {self.etc_config.vocab_size}."
            )
        return tokenizer

    @functools.cached_property
    def masking(self):
        """The `MaskingConfig`."""
        return MaskingConfig.for_tokenizer(
            self.tokenizer,
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            mlm_share=self.mlm_share,
            cpc_share=self.cpc_share if self.use_cpc else 0.0,
            max_cpc_sentence_length=self.max_cpc_sentence_length,
        )

    def records(self):
        """What the TFRecords must agree with: `RecordConfig`."""
        return inputs.RecordConfig(
            long_seq_length=self.max_long_seq_length,
            global_seq_length=self.max_global_seq_length,
            vocab_size=self.etc_config.vocab_size,
        )


class PretrainTask(training.Task):
    """Trains and evaluates; the work is done by the modules beside this one.

    Args:
        config: `PretrainConfig`.
    """

    best_metric = "loss"
    higher_is_better = False

    def __init__(self, config):
        self.config = config

    @functools.cached_property
    def vocab_sha256(self):
        """Digest of the vocabulary: str."""
        return self.config.tokenizer.source_sha256()

    @functools.cached_property
    def num_train_examples(self):
        return self.config.num_train_examples or training.count_examples(self.config.train_pattern)

    def build_model(self):
        pretrain_model = model.PretrainModel(self.config.etc_config, use_cpc=self.config.use_cpc)
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
        inputs.check_records(config.train_pattern, config.records(), config.tokenizer)
        return inputs.make_train_dataset(
            config.train_pattern, config.records(), config.masking, request
        )

    def eval_dataset(self, batch_size):
        config = self.config
        if not config.eval_pattern:
            return None
        inputs.check_records(config.eval_pattern, config.records(), config.tokenizer)
        return inputs.make_eval_dataset(
            config.eval_pattern, config.records(), config.masking, batch_size
        )

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
