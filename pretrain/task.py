"""Pre-training as a task for `etcmodel.training`, and the format of its records."""

import dataclasses
import functools
import re

import tensorflow as tf

from etcmodel import finetuning
from etcmodel.checkpoints import names as names_lib
from etcmodel.feature_checks import FLAG, Range
from etcmodel.finetuning import task as task_lib

from . import masking, metrics, model
from .config import SENTENCES, TEXT, PretrainConfig

__all__ = [
    "PretrainConfig",
    "PretrainTask",
    "RecordConfig",
    "check_records",
    "is_lower_case",
    "make_eval_dataset",
    "make_train_dataset",
    "masked_eval_batches",
    "masked_train_batches",
    "with_cpc_weight_shares",
]

# Reads TFRecords of `preprocess` as batches of windows, with dynamic masking.


LONG_FEATURES = ("long_token_ids", "long_word_starts", "sentence_ids", "long_breakpoints")
GLOBAL_FEATURES = ("global_token_ids", "global_breakpoints")
TEXT_FEATURES = ("long_token_ids", "long_word_starts", "sentence_ids")
_EVAL_SEED = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordConfig(finetuning.RecordConfig):
    """The format that the records must have; see the base class.

    Attributes:
        windows: str, one of `config.WINDOWS`.
        has_absolute_positions: bool. Whether the model has absolute positions, with which documents
            must not be packed.
    """

    task = "pretrain"

    windows: str = SENTENCES
    has_absolute_positions: bool = False

    deciding_flags = ("input_pattern", "windows")

    def ranges(self):
        is_text = self.windows == TEXT
        return {
            **super().ranges(),
            "sentence_ids": Range(-1, 1, "-1 for padding, or 0")
            if is_text
            else Range(-1, "global_token_ids", "-1, or the place of a sentence"),
            **dict.fromkeys(("long_word_starts", "long_breakpoints", "global_breakpoints"), FLAG),
        }

    def model_features(self):
        if self.windows == TEXT:
            return dict.fromkeys(TEXT_FEATURES, finetuning.int_feature(self.long_seq_length))
        lengths = {
            **dict.fromkeys(LONG_FEATURES, self.long_seq_length),
            **dict.fromkeys(GLOBAL_FEATURES, self.global_seq_length),
        }
        return {name: finetuning.int_feature(n) for name, n in lengths.items()}

    def label_features(self):
        return {}

    def decoding_features(self):
        return {}


def check_records(file_pattern, config, tokenizer):
    """Compares the records with the model's lengths and with the vocabulary.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        config: `RecordConfig`.
        tokenizer: `FullTokenizer`.
    Raises:
        ValueError: naming the file, if they do not fit.
    """
    found = finetuning.settings(file_pattern)
    if config.has_absolute_positions and not found:
        raise ValueError(
            f"{file_pattern}: no settings (`.config.json`) beside the records tell whether windows "
            "hold several documents, over which a model with absolute positions "
            "(`max_absolute_position_embeddings`) must not go. Copy the settings there, too, or "
            "preprocess again, with --nopack_documents."
        )
    for file, noted in found.items():
        if (made := noted.get("windows", SENTENCES)) != config.windows:
            raise ValueError(
                f"{file}: the records have windows of {made}, the model needs windows of "
                f"{config.windows}. Preprocess again, with --windows={config.windows}."
            )
        if config.has_absolute_positions and noted.get("pack_documents", True):
            raise ValueError(
                f"{file}: windows hold several documents, and the model has absolute positions "
                "(`max_absolute_position_embeddings`), which would go on from one to the next. "
                "Preprocess again, with --nopack_documents."
            )
    finetuning.check_records(file_pattern, config, need_labels=True)
    finetuning.check_vocabulary(file_pattern, tokenizer)


def is_lower_case(file_pattern):
    """Whether the text of records was lower-cased, from their settings: bool; None if unknown.

    Args:
        file_pattern: str or list of str or None. TFRecord files, wildcards allowed.
    Raises:
        ValueError: naming two files of settings, if they differ.
    """
    found = {}
    for file, noted in finetuning.settings(file_pattern).items():
        if "do_lower_case" in noted:
            found.setdefault(noted["do_lower_case"], file)
    if len(found) > 1:
        raise ValueError(
            f"{found[True]}: the text of the records was lower-cased, that of {found[False]} was "
            "not. Preprocess them alike."
        )
    return next(iter(found), None)


def make_train_dataset(file_pattern, records, masking_config, request):
    """Endless training batches; a window is masked differently in every epoch.

    The masks of a window depend only on the seed and its place in the run, so that a resumed run,
    or one on other devices, gets the same masks.

    Args:
        file_pattern: str or list of str. TFRecord files, wildcards allowed.
        records: `RecordConfig`.
        masking_config: `MaskingConfig`.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset of dicts of int32 [batch, ...]: see `masking.mask_window`.
    """
    batches = finetuning.make_train_dataset(file_pattern, records, request)
    return masked_train_batches(batches, masking_config, request)


def masked_train_batches(batches, masking_config, request):
    """Adds masks to batches of windows; see `make_train_dataset`.

    Args:
        batches: tf.data.Dataset of dicts of int32 [batch, ...], as in `masking.mask_batch`; the
            first batch is the one after `request.skip_examples`.
        masking_config: `MaskingConfig`.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset.
    """
    context, size = request.input_context, request.per_replica_batch_size
    worker, num_workers = 0, 1
    if context is not None:
        worker, num_workers = context.input_pipeline_id, context.num_input_pipelines

    def mask(batch, features):
        # Workers take turns with the windows of a run.
        in_worker = batch * size + tf.range(size, dtype=tf.int64)
        indices = request.skip_examples + in_worker * num_workers + worker
        return masking.mask_batch(features, indices, request.seed, masking_config)

    return batches.enumerate().map(mask, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def with_cpc_weight_shares(batches, warmup_steps, request):
    """Adds to training batches the fraction of the CPC weight for their step.

    It depends only on the step, so that a resumed run gets the same.

    Args:
        batches: tf.data.Dataset of dicts; the first batch is the one after `request.skip_examples`.
        warmup_steps: int. Number of steps in which the fraction rises from 0 to 1; 0 for unchanged
            batches.
        request: `training.TrainDataRequest`.
    Returns:
        tf.data.Dataset; its dicts also have a float32 `cpc_weight_share` [batch].
    """
    if not warmup_steps:
        return batches
    first_step = request.skip_examples // request.global_batch_size
    context = request.input_context
    # In each step, a worker makes one batch for each of its devices.
    per_step = 1 if context is None else context.num_replicas_in_sync // context.num_input_pipelines

    def add(batch, features):
        step = first_step + batch // per_step
        share = tf.minimum(tf.cast(step, tf.float32) / warmup_steps, 1.0)
        shares = tf.fill([request.per_replica_batch_size], share)  # Of known shape, for XLA.
        return {**features, "cpc_weight_share": shares}

    return batches.enumerate().map(add)


def make_eval_dataset(file_pattern, records, masking_config, batch_size):
    """Each window once, in order, with fixed masks; the last batch may be smaller."""
    batches = finetuning.make_eval_dataset(file_pattern, records, batch_size)
    return masked_eval_batches(batches, masking_config, batch_size)


def masked_eval_batches(batches, masking_config, batch_size):
    """Batches of `batch_size` windows with fixed masks: tf.data.Dataset."""

    def mask(batch, features):
        size = tf.shape(features["long_token_ids"], tf.int64)[0]
        indices = batch * batch_size + tf.range(size)
        return masking.mask_batch(features, indices, _EVAL_SEED, masking_config)

    return batches.enumerate().map(mask, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


# The task.


_TABLES = ("position_embeddings", "quotient_embeddings", r"position_emb_lookup_(?:long|global)")
_POSITIONS = re.compile(rf"(?:.*/)?(?:{'|'.join(_TABLES)})/embedding_table")


class PretrainTask(task_lib.RecordsTask):
    """Trains and evaluates on masked windows.

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
            return model.make_text_model(encoder_config)
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
        return model.pretraining_loss(
            outputs,
            features,
            mlm_weight=self.config.mlm_weight,
            cpc_weight=self.config.cpc_weight,
            # Without sentences, `loss_weight` is enough for the mean over all devices.
            gather_negatives=self.config.gather_negatives and self.config.use_cpc,
        )

    def loss_weight(self, features):
        if self.config.use_cpc:
            return None  # Both losses have numbers of their own.
        return tf.math.count_nonzero(features["mlm_mask"])

    def train_dataset(self, request):
        config = self.config
        check_records(config.train_data, config.records(), config.tokenizer)
        batches = make_train_dataset(config.train_data, config.records(), config.masking, request)
        return with_cpc_weight_shares(batches, config.cpc_warmup_steps, request)

    def eval_dataset(self, batch_size):
        config = self.config
        if not config.eval_data:
            return None
        check_records(config.eval_data, config.records(), config.tokenizer)
        is_lower_case([*filter(None, [config.train_data]), config.eval_data])
        return make_eval_dataset(config.eval_data, config.records(), config.masking, batch_size)

    def check_data(self):
        for pattern in filter(None, (self.config.train_data, self.config.eval_data)):
            finetuning.find_bad_record(pattern, self.config.records(), need_labels=True)

    def evaluate(self, predictions):
        return metrics.metrics(
            predictions, mlm_weight=self.config.mlm_weight, cpc_weight=self.config.cpc_weight
        )

    def run_notes(self):
        lower_case = is_lower_case(self.config.train_data)
        noted = {} if lower_case is None else {"do_lower_case": lower_case}
        return {**super().run_notes(), **noted}

    def run_config(self):
        return {**super().run_config(), "vocab_sha256": [self.vocab_sha256]}
