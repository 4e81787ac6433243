"""The annotations that predictions are compared with, without the pages."""

import glob
import gzip
import json
import os

from .raw_data import annotations_of, read_lines

__all__ = ["read_gold", "write_gold_cache"]


def read_gold(pattern):
    """Reads annotations.

    Args:
        pattern: str. Files of Natural Questions, with or without the pages (such as the one of
            `write_gold_cache`), wildcards allowed; held is only what the metrics need.

    Returns:
        dict of example id to tuple of `Annotation`.

    Raises:
        ValueError: if no file matches; names file and line of what is malformed or there twice.
    """
    gold = {}
    for path, number, raw in _raw_examples(pattern):
        try:
            annotations = annotations_of(raw)
            example_id = int(raw["example_id"])
            if example_id in gold:
                raise ValueError(f"there is another example {example_id}")
        except ValueError as error:
            raise ValueError(f"{path}: example {number}: {error}") from error
        gold[example_id] = annotations
    return gold


def write_gold_cache(pattern, path):
    """Writes a small file of the annotations, as JSON lines that `read_gold` takes.

    Args:
        pattern: str. See `read_gold`.
        path: str. A name that ends in `.gz` makes a compressed file. It appears when complete.

    Returns:
        int. Number of examples.

    Raises:
        ValueError: as `read_gold`.
    """
    gold = read_gold(pattern)
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    unfinished = f"{path}.{os.getpid()}.tmp"
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(unfinished, "wt", encoding="utf-8") as file:
            for example_id, annotations in gold.items():
                file.write(json.dumps(_as_raw(example_id, annotations)) + "\n")
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)
    return len(gold)


def _raw_examples(pattern):
    files = _matching_files(pattern)
    if not files:
        raise ValueError(f"No gold file matches {pattern!r}.")
    for path in files:
        for number, line in enumerate(read_lines(path), start=1):
            try:
                yield path, number, json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}: example {number}: malformed JSON: {error}") from error


def _matching_files(pattern):
    if "://" not in pattern:
        return sorted(glob.glob(pattern))
    import tensorflow as tf  # Slow to import, and local files do not need it.

    return sorted(tf.io.gfile.glob(pattern))


def _as_raw(example_id, annotations):
    """An example in Natural Questions' layout, without what the metrics ignore."""
    return {
        "example_id": example_id,
        "annotations": [
            {
                "long_answer": _span_json(annotation.long_answer),
                "short_answers": [_span_json(span) for span in annotation.short_answers],
                "yes_no_answer": annotation.yes_no,
            }
            for annotation in annotations
        ],
    }


def _span_json(span):
    return {"start_token": span.start, "end_token": span.end}
