"""What the fine-tuning programs of all tasks share, from flags to predictions.

Names are imported at their first use, so that `--help` does not wait for TensorFlow.
"""

from etcmodel import lazy_imports

__all__ = [
    "NO_EFFECT",
    "FinetuningConfig",
    "FinetuningTask",
    "GmatFinetuningConfig",
    "LinePredictor",
    "LineTask",
    "Predictor",
    "ProcessedRecordConfig",
    "RecordConfig",
    "ReleaseFlags",
    "changed",
    "check_punctuation",
    "check_records",
    "check_vocabulary",
    "export",
    "features_of_row",
    "find_bad_record",
    "int_feature",
    "make_eval_dataset",
    "make_train_dataset",
    "option",
    "run_program",
    "settings",
    "string_feature",
    "text_of",
    "write_json",
    "write_text",
]

__getattr__ = lazy_imports.attributes(
    __name__,
    {
        "NO_EFFECT": "release_flags",
        "FinetuningConfig": "config",
        "FinetuningTask": "task",
        "GmatFinetuningConfig": "gmat_config",
        "LinePredictor": "prediction_lines",
        "LineTask": "prediction_lines",
        "Predictor": "predictor",
        "ProcessedRecordConfig": "processed",
        "RecordConfig": "records",
        "ReleaseFlags": "release_flags",
        "changed": "etcmodel.options",
        "check_punctuation": "records",
        "check_records": "records",
        "check_vocabulary": "records",
        "export": "predictor",
        "features_of_row": "processed",
        "find_bad_record": "records",
        "int_feature": "records",
        "make_eval_dataset": "records",
        "make_train_dataset": "records",
        "option": "etcmodel.options",
        "run_program": "command_line",
        "settings": "records",
        "string_feature": "records",
        "text_of": "text_values",
        "write_json": "etcmodel.atomic_files",
        "write_text": "etcmodel.atomic_files",
    },
)
