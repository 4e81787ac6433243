"""Typed examples from raw files: arXiv's and PubMed's layout, or a text with its summary."""

import dataclasses
import re

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.json_fields import identified, is_list_of, require_object

__all__ = ["SummaryExample", "example_reader", "parse_example", "parse_row"]

_SENTENCE_MARK = re.compile(r"</?S>")  # Around the sentences of `abstract_text`.


@dataclasses.dataclass(frozen=True)
class SummaryExample:
    """A document and its summary.

    Attributes:
        example_id: str.
        text: str.
        summary: str, with a line for each sentence if sentences are known; None if there is no
            summary.
    """

    example_id: str
    text: str
    summary: str | None = None


def parse_row(row, options, with_summary=True):
    """Makes a `SummaryExample` from a row of `raw_files.read_text_rows`."""
    fields = raw_files.fields_of(row, text=options.text_fields[0])
    return parse_example(fields, options, row["id"], with_summary)


def parse_example(raw, options, default_id="", with_summary=True):
    """Parses and checks a JSON object, or a row of a table.

    Args:
        raw: dict. Documents and summaries are str, or lists of str: sentences, maybe with `<S>` and
            `</S>` around them.
        options: `SummarizationFeatureOptions`, which name its fields.
        default_id: str. The id of an example without one.
        with_summary: bool. Whether to read the summary; predictions do not need it.
    Returns:
        `SummaryExample`.
    Raises:
        ValueError: naming the example's id and the field that is missing or malformed.
    """
    require_object(raw)
    fields = identified(raw, *options.id_fields or ("id",), default=default_id)
    text = " ".join(_sentences(fields, _first(options.text_fields, raw)))
    if not with_summary:
        return SummaryExample(fields.example_id, text)
    name = _first(options.summary_fields, raw)
    summary = "\n".join(_sentences(fields, name))
    fields.check_utf8(name, summary)
    return SummaryExample(fields.example_id, text, summary)


def _first(names, raw):
    """The first of several names that an object has; else the last one, for the error."""
    return next((name for name in names if name in raw), names[-1])


def _sentences(fields, name):
    """The contents of a field: a list of one str, or of one str per sentence."""
    value = fields.get(name)
    sentences = [value] if isinstance(value, str) else value
    if not is_list_of(sentences, str):
        raise fields.error(name, "must be a string, or a list of strings", value)
    if not isinstance(value, str):
        sentences = [_SENTENCE_MARK.sub("", sentence).strip() for sentence in sentences]
    sentences = [sentence for sentence in sentences if sentence.strip()]
    if not sentences:
        raise fields.error(name, "must not be empty", value)
    return sentences


def example_reader(options, with_summary=True, table=None):
    """Makes the function that reads the examples of a raw file: see `raw_files.row_reader`."""
    return raw_files.row_reader(lambda row: parse_row(row, options, with_summary), table)
