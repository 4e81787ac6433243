"""Writing results: a file appears under its name only when it is complete."""

import json
import os

import tensorflow as tf

__all__ = ["write_json", "write_text"]


def write_json(path, value):
    """Writes a value as indented JSON; folders are made."""
    write_text(path, [json.dumps(value, ensure_ascii=False, indent=1)])


def write_text(path, parts):
    """Writes strings one after the other, such as the lines of a JSONL file; folders are made.

    Args:
        path: str.
        parts: iterable of str.
    """
    if folder := os.path.dirname(path):
        tf.io.gfile.makedirs(folder)
    # Of this process alone: one that evaluates beside the training writes the same file.
    temporary = f"{path}.{os.getpid()}.tmp"
    with tf.io.gfile.GFile(temporary, "w") as file:
        for part in parts:
            file.write(part)
    tf.io.gfile.rename(temporary, path, overwrite=True)
