"""Training that every task shares: flags, strategy, optimizer, loop."""

from etcmodel.record_files import matching_files
from etcmodel.training.config import TrainingConfig
from etcmodel.training.continuous import continuous_eval, wait_for_run
from etcmodel.training.errors import error_line
from etcmodel.training.flags import define_training_flags, training_config_from_flags
from etcmodel.training.input_pipeline import count_examples, training_batches
from etcmodel.training.loop import evaluate, load_model, predict, train
from etcmodel.training.optimizer import build_learning_rate, build_optimizer
from etcmodel.training.run_directory import (
    UNKNOWN,
    OtherRunError,
    best_checkpoint,
    read_run_config,
)
from etcmodel.training.strategy import build_strategy
from etcmodel.training.task import Task, TrainDataRequest
from etcmodel.training.trainer import NonFiniteLossError

__all__ = [
    "UNKNOWN",
    "NonFiniteLossError",
    "OtherRunError",
    "Task",
    "TrainDataRequest",
    "TrainingConfig",
    "best_checkpoint",
    "build_learning_rate",
    "build_optimizer",
    "build_strategy",
    "continuous_eval",
    "count_examples",
    "define_training_flags",
    "error_line",
    "evaluate",
    "load_model",
    "matching_files",
    "predict",
    "read_run_config",
    "train",
    "training_batches",
    "training_config_from_flags",
    "wait_for_run",
]
