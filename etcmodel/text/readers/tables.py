"""Reads tables: a block for each cell that is not empty, and its position in the table."""

import numbers

from etcmodel.text.documents import Cell
from etcmodel.text.readers import fields

__all__ = ["FIELDS", "add_table"]

FIELDS = ("caption", "header", "rows")


def add_table(builder, table, where, parent=-1):
    """Adds a table.

    Args:
        builder: `documents.Builder`.
        table: dict. `rows`: list of lists of str, numbers or None, or of dicts by column.
            `header`: list of str, the names of the columns, if there are any. `caption`: str.
        where, parent: as in `sections.add_sections`.
    """
    fields.mapping(table, where, "an object with `rows`")
    fields.known_fields(table, where, FIELDS)
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
