"""Fine-tuning programs: what those of all tasks share, from flags to predictions."""

from etcmodel.atomic_files import write_json, write_text
from etcmodel.finetuning.config import FinetuningConfig
from etcmodel.finetuning.predictor import Predictor, export
from etcmodel.finetuning.program import run_program
from etcmodel.finetuning.records import (
    RecordConfig,
    check_punctuation,
    check_records,
    check_vocabulary,
    make_eval_dataset,
    make_train_dataset,
)
from etcmodel.finetuning.release_flags import NO_EFFECT, ReleaseFlags
from etcmodel.finetuning.task import FinetuningTask
from etcmodel.preprocessing.options import option

__all__ = [
    "NO_EFFECT",
    "FinetuningConfig",
    "FinetuningTask",
    "Predictor",
    "RecordConfig",
    "ReleaseFlags",
    "check_punctuation",
    "check_records",
    "check_vocabulary",
    "export",
    "make_eval_dataset",
    "make_train_dataset",
    "option",
    "run_program",
    "write_json",
    "write_text",
]
