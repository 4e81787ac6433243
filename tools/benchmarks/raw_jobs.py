"""The preprocessing of a raw file by a task's default options, in this process and unwritten."""

import importlib
import os

__all__ = ["convert_file", "make_job", "read_examples"]


def make_job(task, path, vocab_file, folder, **fields):
    """The `preprocessing.Job` of a raw file.

    Args:
        task: str. A data set's folder.
        path: str. The raw file.
        vocab_file: str.
        folder: str. Where the records would go.
        **fields: further options of the task.
    """
    from etcmodel.preprocessing import program

    module = importlib.import_module(f"etcmodel.tasks.{task}.preprocess")
    options = module.PreprocessOptions(
        input_pattern=path,
        output_prefix=os.path.join(folder, "records"),
        vocab_file=vocab_file,
        **fields,
    )
    (options,) = options.sets()
    return program.make_job(options, *module.load_parts())


def read_examples(task, path):
    """The examples of a raw file, as the task's `read_examples` yields them."""
    return importlib.import_module(f"etcmodel.tasks.{task}.examples").read_examples(path)


def convert_file(job, convert, path, limit=None):
    """Reads, converts and serializes the raw examples of a file, at most `limit`.

    Returns:
        (number of raw examples, number of records).
    """
    from etcmodel.preprocessing import records

    num_read = num_records = 0
    for raw in job.read(path):
        if num_read == limit:
            break
        num_read += 1
        converted, serialized = records.convert_example(convert, raw)
        if converted.problem:
            raise ValueError(f"{path}: example {num_read}: {converted.problem}")
        num_records += len(serialized)
    return num_read, num_records
