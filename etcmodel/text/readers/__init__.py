"""Readers: turn users' data (texts, tables, pages, graphs) into a `documents.Document`."""

import numbers

from etcmodel.text import documents
from etcmodel.text.readers import fields, graphs, sections, tables
from etcmodel.text.readers.json_lines import read_json_lines

__all__ = ["FIELDS", "read", "read_json_lines"]

_DOCUMENT = (*sections.FIELDS, "table", "html", *graphs.FIELDS)
FIELDS = (documents.QUESTION, *_DOCUMENT, "documents", "id", "extra")


def read(example, split_sentences, where="example", main_only=False):
    """Reads an example into a document.

    Args:
        example: str, a text; or a dict with the fields of one:
            `question`: str, which comes first;
            `title`, `text`, `sentences`, `paragraphs`, `sections`: see `sections.add_sections`;
            `table`: see `tables.add_table`; `html`: see `html_pages.add_page`;
            `nodes`, `edges`: see `graphs.add_graph`;
            `documents`: list of texts or of dicts with these fields;
            `id`: str or int; `extra`: dict, passed on unchanged;
            or a `documents.Document`, which is returned.
        split_sentences: function of str to list of str: see `sentence_splitting`.
        where: str. The example's name in errors.
        main_only: bool. For pages: see `html_pages.add_page`.
    Returns:
        `documents.Document`.
    Raises:
        ValueError: naming the field, if the example is invalid.

    >>> from etcmodel.text import readers
    >>> example = {"question": "Who wrote Emma?", "documents": ["Jane. It is good."]}
    >>> document = readers.read(example, split_sentences=lambda text: text.split(". "))
    >>> [block.kind for block in document.blocks]
    ['question', 'document', 'sentence', 'sentence']
    """
    if isinstance(example, documents.Document):
        return example
    if isinstance(example, (str, bytes)):
        example = {"text": example}
    fields.mapping(example, where, "a text, a dict of fields or a Document")
    fields.known_fields(example, where, FIELDS)
    builder = documents.Builder(split_sentences, main_only)
    if example.get("question") is not None:
        question = fields.string(example["question"], f"{where}.question")
        builder.add_whole(documents.QUESTION, question, f"{where}.question")
    _add_content(builder, example, where)
    given = fields.given(example, "documents", [])
    for index, one in enumerate(fields.sequence(given, f"{where}.documents")):
        _add_document(builder, one, f"{where}.documents[{index}]")
    if all(example.get(name) is None for name in (documents.QUESTION, *_DOCUMENT, "documents")):
        raise ValueError(f"`{where}` has no content. Give it one of {sorted(_DOCUMENT)}.")
    extra = fields.mapping(fields.given(example, "extra", {}), f"{where}.extra")
    return builder.document(_id(fields.given(example, "id", ""), f"{where}.id"), extra)


def _id(value, where):
    """An id as str: whole numbers become digits, truth values are refused."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, (str, bytes)):
        fields.fail(where, "a string or a whole number", value)
    return fields.string(value, where)


def _add_document(builder, content, where):
    if isinstance(content, (str, bytes)):
        content = {"text": content}
    fields.mapping(content, where, "a text or a dict of fields")
    fields.known_fields(content, where, _DOCUMENT)
    _add_content(builder, content, where, builder.add("document"))


def _add_content(builder, content, where, parent=-1):
    sections.add_sections(builder, content, where, parent)
    if content.get("table") is not None:
        tables.add_table(builder, content["table"], f"{where}.table", parent)
    if content.get("html") is not None:
        from etcmodel.text.readers import html_pages  # lxml, only needed for pages.

        html_pages.add_page(builder, content["html"], f"{where}.html", parent)
    if content.get("nodes") is not None:
        graphs.add_graph(builder, content, where, parent)
    elif content.get("edges") is not None:
        raise ValueError(f"`{where}` has `edges` but no `nodes`.")
