"""The typed examples of raw texts, whatever kind of file they are from."""

import dataclasses

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified

from .config import MULTI_LABEL, REGRESSION

__all__ = ["TextExample", "example_reader", "parse_example", "parse_row"]


@dataclasses.dataclass(frozen=True)
class TextExample:
    """A text, or two, and what is told of them.

    `label` is a str; a tuple of str with several labels; a float in a regression. None: unknown.
    """

    example_id: str
    text: str
    second_text: str | None = None
    label: object = None


def parse_row(row, options, with_label=True, needs_labels=False):
    """The `TextExample` of what `raw_files.read_text_rows` yields, as `parse_example`."""
    fields = raw_files.fields_of(row, text=options.text_field, label=options.label_field)
    return parse_example(fields, options, row["id"], with_label, needs_labels)


def parse_example(raw, options, default_id="", with_label=True, needs_labels=False):
    """Checks a JSON object, or a row of a table, and gives it its type.

    Args:
        raw: dict. The options name its fields; for what a label may be, see `json_fields.Fields`.
        options: `ClassificationFeatureOptions`.
        default_id: str. The id of an example without one.
        with_label: bool. Whether to read the label; a prediction does without.
        needs_labels: bool. Whether there must be a label, as records need it.
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
    """The function that reads the examples of a raw file: see `raw_files.row_reader`."""
    return raw_files.row_reader(lambda row: parse_row(row, options, with_label), table)
