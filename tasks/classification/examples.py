"""Typed examples from raw texts in any kind of file."""

import dataclasses
import functools

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified
from etcmodel.text.labels import in_order

from .config import MULTI_LABEL, REGRESSION

__all__ = [
    "TextExample",
    "example_reader",
    "gather_labels",
    "parse_example",
    "parse_row",
]


@dataclasses.dataclass(frozen=True)
class TextExample:
    """One or two texts, with their label.

    `label` is a str; with several labels, a tuple of str; for a regression, a float. None: unknown.
    """

    example_id: str
    text: str
    second_text: str | None = None
    label: object = None


def parse_row(row, options, with_label=True, needs_labels=False):
    """Makes a `TextExample` from a row of `raw_files.read_text_rows`, as `parse_example` does."""
    fields = raw_files.fields_of(row, text=options.text_field, label=options.label_field)
    return parse_example(fields, options, row["id"], with_label, needs_labels)


def parse_example(raw, options, default_id="", with_label=True, needs_labels=False):
    """Parses and checks a JSON object, or a row of a table.

    Args:
        raw: dict. The options name its fields; for valid labels, see `json_fields.Fields`.
        options: `ClassificationFeatureOptions`.
        default_id: str. The id of an example without one.
        with_label: bool. Whether to read the label; predictions do not need it.
        needs_labels: bool. Whether a label is required, as for records.
    Returns:
        `TextExample`.
    Raises:
        ValueError: naming the example's id and the field that is missing or malformed.
    """
    fields = identified(raw, options.id_field, default=default_id)
    names = filter(None, (options.text_field, options.second_text_field))
    texts = [fields.filled_text(name) for name in names]
    label = _label(fields, options) if with_label else None
    if needs_labels and label is None:
        raise fields.missing(options.label_field, why=" or empty, and records need it")
    return TextExample(fields.example_id, *texts, label=label)


def _label(fields, options):
    name = options.label_field
    if options.problem_type == REGRESSION:
        return fields.number(name)
    if options.problem_type == MULTI_LABEL:
        return fields.labels(name, options.label_separator)
    return fields.label(name)


def example_reader(options, with_label=True, table=None):
    """Makes the function that reads the examples of a raw file: see `raw_files.row_reader`."""
    return raw_files.row_reader(lambda row: parse_row(row, options, with_label), table)


def gather_labels(input_pattern, options):
    """The labels in raw files, sorted (integers by value, others as text): a tuple of str.

    Raises:
        ValueError: if there are none; names the first example and its problem.
    """

    def labels_of(row):
        label = parse_row(row, options, needs_labels=True).label
        return label if options.problem_type == MULTI_LABEL else {label}

    read = functools.partial(raw_files.read_text_rows, table=options.table(), tells=False)
    return in_order(raw_files.gather_labels(input_pattern, read, labels_of, "a label"))
