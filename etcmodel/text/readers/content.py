"""Reads texts in nested sections, tables and graphs into the blocks of a document."""

import numbers

from etcmodel.text.documents import Cell
from etcmodel.text.readers import fields

# The fields of each.
SECTION = ("title", "text", "sentences", "paragraphs", "sections")
GRAPH = ("nodes", "edges")
_TABLE = ("caption", "header", "rows")
_NODE = ("id", "text", "kind")
_EDGE = ("from", "to", "type")

_DEEPEST = 50  # Of nested sections.


def add_sections(builder, content, where, parent=-1, depth=0):
    """Adds what the fields of `content` hold, in the order of `SECTION`.

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
            fields.known_fields(section, name, SECTION)
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


# Tables: a block for each cell that is not empty, and its position in the table.


def add_table(builder, table, where, parent=-1):
    """Adds a table.

    Args:
        builder: `documents.Builder`.
        table: dict. `rows`: list of lists of str, numbers or None, or of dicts by column.
            `header`: list of str, the names of the columns, if there are any. `caption`: str.
        where, parent: as in `add_sections`.
    """
    fields.mapping(table, where, "an object with `rows`")
    fields.known_fields(table, where, _TABLE)
    if "rows" not in table:
        raise ValueError(f"`{where}` lacks the field `rows`.")
    rows = fields.sequence(table["rows"], f"{where}.rows", "a list of rows")
    header, names = _header(table, rows, where)
    block = builder.add("table", parent=parent)
    if table.get("caption") is not None:
        caption = fields.string(table["caption"], f"{where}.caption")
        builder.add_whole("caption", caption, f"{where}.caption", block)
    number = builder.new_table()
    if header:
        _add_row(builder, header, f"{where}.header", (number, 0, block), is_header=True)
    for index, row in enumerate(rows):
        name = f"{where}.rows[{index}]"
        cells = _cells(row, name, names, header or rows[0])
        _add_row(builder, cells, name, (number, index + bool(header), block))


def _header(table, rows, where):
    """(header, keys of rows): rows that are dicts name their columns themselves."""
    if table.get("header") is not None:
        header = fields.sequence(table["header"], f"{where}.header", "a list of names of columns")
        return header, header
    if rows and isinstance(rows[0], dict):
        return [*rows[0]], [*rows[0]]
    return [], []


def _cells(row, where, names, first):
    """The cells of a row, which must be as many as in the first one."""
    if isinstance(row, dict):
        fields.known_fields(row, where, names)
        return [row.get(name) for name in names]
    cells = fields.sequence(row, where, "a list of cells, or an object by column")
    if len(cells) != len(first):
        raise ValueError(f"`{where}` has {len(cells)} cells in a table of {len(first)} columns.")
    return cells


def _add_row(builder, cells, where, place, is_header=False):
    number, row, parent = place
    for column, value in enumerate(cells):
        name = f"{where}[{column}]"
        kind = "header" if is_header else "cell"
        block = builder.add_whole(kind, _text(value, name), name, parent)
        if block is not None:
            cell = Cell(number, block, (row, row), (column, column), is_header)
            builder.cells.append(cell)


def _text(value, where):
    if value is None:
        return ""
    if isinstance(value, numbers.Number):
        return str(value)
    return fields.string(value, where)


# Graphs: nodes with texts, and edges of named types between them.


def add_graph(builder, graph, where, parent=-1):
    """Adds a graph: a block for each node, and an edge between blocks for each edge.

    Args:
        builder: `documents.Builder`.
        graph: dict. `nodes`: list of {"id", "text", "kind"} (the text is optional, the kind is
            "node" by default), or dict of text by id. `edges`: list of {"from", "to", "type"} or
            [from, to, type]; the type is "edge" by default.
        where, parent: as in `add_sections`.
    """
    blocks = {}
    for name, node in _nodes(graph["nodes"], f"{where}.nodes"):
        fields.known_fields(fields.mapping(node, name), name, _NODE)
        identifier = _identifier(node.get("id"), f"{name}.id")
        if identifier in blocks:
            raise ValueError(f"`{name}.id` is there twice: {identifier!r}.")
        kind = fields.string(fields.given(node, "kind", "node"), f"{name}.kind")
        text = fields.string(fields.given(node, "text", ""), f"{name}.text")
        number = builder.add_text(text, f"{name}.text")
        place = (number, 0, len(text)) if text.strip() else (-1, 0, 0)
        blocks[identifier] = builder.add(kind, *place, parent, str(identifier))
    edges = fields.sequence(fields.given(graph, "edges", []), f"{where}.edges")
    for index, edge in enumerate(edges):
        _add_edge(builder, blocks, edge, f"{where}.edges[{index}]")


def _nodes(nodes, where):
    """(name in errors, dict) of each node."""
    if isinstance(nodes, dict):
        for identifier, text in nodes.items():
            yield f"{where}[{identifier!r}]", {"id": identifier, "text": text}
        return
    for index, node in enumerate(fields.sequence(nodes, where, "a list of nodes")):
        yield f"{where}[{index}]", node


def _add_edge(builder, blocks, edge, where):
    if isinstance(edge, (list, tuple)) and len(edge) in (2, 3):
        edge = dict(zip(_EDGE, edge, strict=False))
    fields.mapping(edge, where, "[from, to], [from, to, type] or an object with these fields")
    fields.known_fields(edge, where, _EDGE)
    kind = fields.string(fields.given(edge, "type", "edge"), f"{where}.type")
    ends = []
    for side in ("from", "to"):
        identifier = _identifier(edge.get(side), f"{where}.{side}")
        if identifier not in blocks:
            raise ValueError(f"`{where}.{side}` names no node: {identifier!r}.")
        ends.append(blocks[identifier])
    builder.connect(kind, *ends)


def _identifier(value, where):
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        fields.fail(where, "the id of a node, a string or an int", value)
    return value
