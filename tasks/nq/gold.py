"""The gold annotations, without the pages."""

import glob
import gzip
import json
import os

from etcmodel import atomic_files, opener
from etcmodel.preprocessing import raw_files

from .raw_data import annotations_of, example_id_of

__all__ = ["default_cache_path", "matching_files", "read_gold", "write_gold_cache"]


def read_gold(pattern, skip=None):
    """Reads annotations.

    Args:
        pattern: str. Natural Questions files, with or without the pages (such as the one of
            `write_gold_cache`); wildcards allowed. Only what the metrics need is kept in memory.
        skip: function called with the message about a malformed line, which is then skipped, as in
            preprocess; None makes it an error.

    Returns:
        dict from example id to tuple of `Annotation`, at least one.

    Raises:
        ValueError: if no file matches, or one has no example or is broken; names file and place of
            an example that is malformed, duplicate or without annotation.
    """
    gold = {}
    for path in matching_files(pattern):
        num_before, num_skipped = len(gold), 0
        for where, line in raw_files.read_json_texts(path):
            place = f"{path}: {where}"
            try:
                example_id, annotations = _annotated(line)
            except ValueError as error:
                if skip is None:
                    raise ValueError(f"{place}: {error}") from error
                skip(f"{place}: {error}")
                num_skipped += 1
                continue
            _check_useful(place, example_id, annotations, gold)
            gold[example_id] = annotations
        if len(gold) == num_before:
            found = (
                f"all of its {num_skipped} lines are malformed" if num_skipped else "it is empty"
            )
            raise ValueError(f"{path}: the file holds no example: {found}")
    return gold


def write_gold_cache(pattern, path, skip=None):
    """Writes a small file of the annotations, as JSON lines for `read_gold`.

    Args:
        pattern, skip: see `read_gold`.
        path: str. A name that ends in `.gz` makes a compressed file. It appears when complete.

    Returns:
        int. Number of examples.

    Raises:
        ValueError: as in `read_gold`.
    """
    gold = read_gold(pattern, skip)
    open_text = gzip.open if path.endswith(".gz") else open
    with (
        atomic_files.new_file(path) as unfinished,
        open_text(unfinished, "wt", encoding="utf-8") as file,
    ):
        for example_id, annotations in gold.items():
            file.write(json.dumps(_as_raw(example_id, annotations)) + "\n")
    return len(gold)


def default_cache_path(pattern):
    """`cache`, beside the first of the gold files, as in the release.

    Raises:
        ValueError: if no file matches.
    """
    return os.path.join(os.path.dirname(matching_files(pattern)[0]), "cache")


def matching_files(pattern):
    """The gold files of a pattern, in order: list of str.

    Raises:
        ValueError: if no file matches.
    """
    if "://" in pattern:
        import tensorflow as tf  # Slow to import, and not needed for local files.

        files = tf.io.gfile.glob(pattern)
    else:
        files = glob.glob(pattern)
    files = sorted(opener.shown(files, pattern))
    if not files:
        raise ValueError(f"No gold file matches {pattern!r}.")
    return files


def _annotated(line):
    raw = raw_files.load_json_text(line)
    return example_id_of(raw), annotations_of(raw)


def _check_useful(place, example_id, annotations, gold):
    """Rejects ids that preprocess accepts, but whose predictions could not be scored."""
    if not annotations:
        raise ValueError(f"{place}: example {example_id} has no annotation to compare with")
    if example_id in gold:
        raise ValueError(f"{place}: there is another example {example_id}")


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
    tokens = {"start_token": span.start, "end_token": span.end}
    return {**tokens, "start_byte": span.start_byte, "end_byte": span.end_byte}
