"""From raw files to sharded TFRecords, in a way that every task shares.

The names are imported at first use, so that a program can refuse wrong flags without waiting for
TensorFlow.
"""

import importlib

__all__ = [
    "BadExampleError",
    "Converted",
    "ConverterFactory",
    "Job",
    "input_files",
    "run",
    "to_tf_example",
]

_HOMES = {
    "BadExampleError": "records",
    "Converted": "records",
    "ConverterFactory": "conversion",
    "Job": "job",
    "input_files": "job",
    "run": "job",
    "to_tf_example": "records",
}


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
