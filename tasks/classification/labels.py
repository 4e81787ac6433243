"""The labels of a data set: collected from its raw files, or read from a file."""

from etcmodel import bounded_json
from etcmodel.preprocessing import input_files, raw_files
from etcmodel.preprocessing.json_fields import is_list_of
from etcmodel.text.labels import in_order

from .config import MULTI_LABEL
from .raw_data import parse_row

__all__ = ["gather", "read_labels"]


def gather(input_pattern, options):
    """The labels in raw files, sorted (integers by value, others as text): a tuple of str.

    Raises:
        ValueError: if there are none; names the first example and its problem.
    """
    found, first = set(), ""
    for path in input_files(input_pattern):
        for row in raw_files.read_text_rows(path, options.table(), tells=False):
            try:
                label = parse_row(row, options, needs_labels=True).label
            except ValueError as error:  # Preprocessing counts and reports it.
                first = first or f", the first: {path}: {row['place']}: {error}"
                continue
            found.update(label if options.problem_type == MULTI_LABEL else {label})
    if not found:
        raise ValueError(f"{input_pattern}: no example has a label{first}")
    return in_order(found)


def read_labels(path):
    """Reads labels from a file: tuple of str.

    Args:
        path: str. A text file with one label per line; or, if it ends in `.json`, an object with a
            list `labels`, such as the settings beside records.
    Raises:
        ValueError: naming the file, if it contains no labels.
    """
    if path.lower().endswith(".json"):
        labels = bounded_json.read_object(path, "Preprocess again.").get("labels")
    else:
        labels = raw_files.read_entries(path)
    if not labels or not is_list_of(labels, str):
        raise ValueError(f"{path}: there must be labels. Received: {labels}")
    return tuple(labels)
