"""Reads texts, and nested sections, paragraphs and sentences."""

from etcmodel.text.readers import fields

__all__ = ["FIELDS", "add_sections"]

FIELDS = ("title", "text", "sentences", "paragraphs", "sections")

_DEEPEST = 50


def add_sections(builder, content, where, parent=-1, depth=0):
    """Adds what the fields of `content` hold, in the order of `FIELDS`.

    Args:
        builder: `documents.Builder`.
        content: dict. `title`: str. `text`: str, which is split into sentences. `sentences`: list
            of str. `paragraphs`: list of str (split into sentences) or of lists of sentences.
            `sections`: list of such dicts.
        where: str. Its name in errors; `parent`: int, the block that everything is part of.
    """
    if depth > _DEEPEST:
        raise ValueError(f"`{where}` is nested deeper than {_DEEPEST} levels.")
    if content.get("title") is not None:
        title = fields.string(content["title"], f"{where}.title")
        builder.add_whole("title", title, f"{where}.title", parent)
    if content.get("text") is not None:
        text = fields.string(content["text"], f"{where}.text")
        builder.add_sentences(text, f"{where}.text", parent)
    if content.get("sentences") is not None:
        _add_sentences(builder, content["sentences"], f"{where}.sentences", parent)
    if content.get("paragraphs") is not None:
        for name, paragraph in _numbered(content["paragraphs"], f"{where}.paragraphs"):
            _add_paragraph(builder, paragraph, name, parent)
    if content.get("sections") is not None:
        for name, section in _numbered(content["sections"], f"{where}.sections"):
            fields.mapping(section, name)
            fields.known_fields(section, name, FIELDS)
            block = builder.add("section", parent=parent)
            add_sections(builder, section, name, block, depth + 1)


def _add_paragraph(builder, paragraph, where, parent):
    block = builder.add("paragraph", parent=parent)
    if isinstance(paragraph, (list, tuple)):
        _add_sentences(builder, paragraph, where, block)
    else:
        builder.add_sentences(fields.string(paragraph, where), where, block)


def _add_sentences(builder, sentences, where, parent):
    for name, sentence in _numbered(sentences, where):
        builder.add_whole("sentence", fields.string(sentence, name), name, parent)


def _numbered(values, where):
    """(name of the element, element) of a list."""
    for index, value in enumerate(fields.sequence(values, where)):
        yield f"{where}[{index}]", value
