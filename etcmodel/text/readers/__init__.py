"""Readers: turn users' data (texts, tables, pages, graphs) into a `documents.Document`."""

import numbers
import os

from etcmodel import bounded_json, opener
from etcmodel.text import documents
from etcmodel.text.readers import content as content_lib
from etcmodel.text.readers import fields

__all__ = ["FIELDS", "read", "read_json_lines"]

_DOCUMENT = (*content_lib.SECTION, "table", "html", *content_lib.GRAPH)
FIELDS = (documents.QUESTION, *_DOCUMENT, "documents", "id", "extra")


def read(example, split_sentences, where="example", main_only=False):
    """Reads an example into a document.

    Args:
        example: str, a text; or a dict with the fields of one:
            `question`: str, which comes first;
            `title`, `text`, `sentences`, `paragraphs`, `sections`: see `content.add_sections`;
            `table`: see `content.add_table`; `html`: see `html_pages.add_page`;
            `nodes`, `edges`: see `content.add_graph`;
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
    content_lib.add_sections(builder, content, where, parent)
    if content.get("table") is not None:
        content_lib.add_table(builder, content["table"], f"{where}.table", parent)
    if content.get("html") is not None:
        from etcmodel.text.readers import html_pages  # lxml, only needed for pages.

        html_pages.add_page(builder, content["html"], f"{where}.html", parent)
    if content.get("nodes") is not None:
        content_lib.add_graph(builder, content, where, parent)
    elif content.get("edges") is not None:
        raise ValueError(f"`{where}` has `edges` but no `nodes`.")


def read_json_lines(path):
    """Reads a file of JSON lines, or of another layout that `opener.read_rows` takes; or a folder.

    Args:
        path: str. JSON lines, a JSON array, a table with a header, Parquet or Arrow; compressed or
            not; local or remote (`gs://…`). Or a folder of `.txt` files.
    Yields:
        (str, dict): "path, line 3" for errors, and the object of that line. For a file in a folder
        its `text`, its name as `id`, and for one in a subfolder that one's name as `label`.
    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming file and line, if a line is not a JSON object or exceeds the limits of
            `bounded_json`, or the file is damaged.

    >>> from etcmodel.text import readers
    >>> next(readers.read_json_lines("reviews.csv"))
    ('reviews.csv, line 2', {'text': 'A good book.', 'label': 'pos'})
    """
    path = os.fspath(path)
    if opener.is_folder(path):
        for name, text, label, problem in opener.read_folder(path):
            where = os.path.join(path, name)
            if problem:
                raise ValueError(f"{where}: {problem}")
            yield where, {"id": name, "text": text, **({} if label is None else {"label": label})}
        return
    for row in opener.read_rows(path, is_parsed=False, table=opener.Table()):
        where = f"{path}, {row.place}"
        if row.problem:
            raise ValueError(f"{where}: {row.problem}")
        if isinstance(row.value, dict):
            yield where, row.value
        else:
            text = row.value.strip().encode("utf-8", "surrogateescape")
            yield where, bounded_json.load_object(text, where)
