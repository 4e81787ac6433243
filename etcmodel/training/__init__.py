"""Training that every task shares: options, strategy, optimizer, loop.

Names are imported at their first use, so that `--help` does not wait for TensorFlow.
"""

from etcmodel import lazy_imports

__all__ = [
    "RUN_CONFIG_FILE",
    "UNKNOWN",
    "HeadTask",
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
    "error_line",
    "evaluate",
    "load_model",
    "matching_files",
    "parse_changes",
    "predict",
    "read_run_config",
    "resumed_config",
    "show_metrics",
    "train",
    "training_batches",
    "wait_for_run",
]

__getattr__ = lazy_imports.attributes(
    __name__,
    {
        "RUN_CONFIG_FILE": "run_directory",
        "UNKNOWN": "run_directory",
        "HeadTask": "head_task",
        "NonFiniteLossError": "trainer",
        "OtherRunError": "run_directory",
        "Task": "task",
        "TrainDataRequest": "task",
        "TrainingConfig": "config",
        "best_checkpoint": "run_directory",
        "build_learning_rate": "schedules",
        "build_optimizer": "optimizer",
        "build_strategy": "strategy",
        "continuous_eval": "continuous",
        "count_examples": "input_pipeline",
        "error_line": "etcmodel.program_end",
        "evaluate": "loop",
        "load_model": "loop",
        "matching_files": "etcmodel.record_files",
        "parse_changes": "history",
        "predict": "loop",
        "read_run_config": "run_directory",
        "resumed_config": "resuming",
        "show_metrics": "progress",
        "train": "loop",
        "training_batches": "input_pipeline",
        "wait_for_run": "continuous",
    },
)
