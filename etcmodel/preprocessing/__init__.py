"""Converts raw files into sharded TFRecords; shared by all tasks.

Names are imported on first use, so that a program can reject wrong flags without waiting for
TensorFlow.
"""

from etcmodel import lazy_imports

__all__ = [
    "BadExampleError",
    "Converted",
    "ConverterFactory",
    "Job",
    "Joined",
    "ProcessorConverterFactory",
    "Repeated",
    "input_files",
    "padded",
    "run",
    "to_tf_example",
]

__getattr__ = lazy_imports.attributes(
    __name__,
    {
        "BadExampleError": "records",
        "Converted": "records",
        "ConverterFactory": "conversion",
        "Job": "job",
        "Joined": "padding",
        "ProcessorConverterFactory": "conversion",
        "Repeated": "padding",
        "input_files": "job",
        "padded": "padding",
        "run": "job",
        "to_tf_example": "records",
    },
)
