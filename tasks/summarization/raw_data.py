"""The typed examples of raw files: arXiv's and PubMed's layout, and a text with its summary."""

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
        summary: str, with a line for each sentence where these are known; None if it is unknown.
    """

    example_id: str
    text: str
    summary: str | None = None


def parse_row(row, options, with_summary=True):
    """The `SummaryExample` of what `raw_files.read_text_rows` yields, as `parse_example`."""
    fields = raw_files.fields_of(row, text=options.text_fields[0])
    return parse_example(fields, options, row["id"], with_summary)


def parse_example(raw, options, default_id="", with_summary=True):
    """Parses and checks a JSON object, or a row of a table.

    Args:
        raw: dict. Documents and summaries are str, or lists of str: sentences, maybe with `<S>` and
            `</S>` around them.
        options: `SummarizationFeatureOptions`, which name its fields.
        default_id: str. The id of an example without one.
        with_summary: bool. Whether to read the summary; a prediction does without.
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
    """The first of some names that an object has; else the last, of which errors then tell."""
    return next((name for name in names if name in raw), names[-1])


def _sentences(fields, name):
    """What a field holds, a list of str: one, or a sentence each."""
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
    """The function that reads the examples of a raw file: see `raw_files.row_reader`."""
    return raw_files.row_reader(lambda row: parse_row(row, options, with_summary), table)
