"""Relations between the blocks of a document, as pairs of global tokens or of long ones.

Every document has `part_of` (from a block to the one it is part of) and `has_part`; tables have
`row` and `column` (cells of the same one) and `header` (from a cell to the headers of its row and
column). Pages add `under` (from a block to the heading above it) and `link`; graphs add the types
of their edges.
"""

import numpy as np

__all__ = ["DERIVED", "edges_of", "long_edges_of", "mention_pairs"]


_MOST_CELLS = 8192  # Of one table: a matrix of all pairs is built.


def edges_of(document, name, places):
    """Returns the edges of a relation between included blocks.

    Args:
        document: `documents.Document`.
        name: str.
        places: int [num_blocks]. The global token of each block, -1 if it is not included.
    Returns:
        int32 [num_edges, 2]: (from, to), indices of global tokens.
    """
    return places[_block_pairs(document, name, places)].astype(np.int32)


def long_edges_of(document, name, places, blocks, radius):
    """Returns the edges of a relation between the tokens of included blocks: all with all.

    Args:
        document, name, places: as in `edges_of`.
        blocks: int [long_len]. The block of each token, -1 for special ones; those of a block are
            adjacent.
        radius: int. Tokens farther apart are not paired.
    Returns:
        int32 [num_pairs, 2]: (from, to), indices of long tokens, sorted, each once.
    """
    if not len(blocks):
        return np.zeros([0, 2], np.int32)
    numbers = np.arange(len(document.blocks))
    order = np.argsort(blocks, kind="stable")
    firsts, ends = (np.searchsorted(blocks[order], numbers, side) for side in ("left", "right"))
    has_tokens = ends > firsts
    firsts = np.where(has_tokens, order[np.minimum(firsts, len(blocks) - 1)], 0)
    lasts = firsts + np.bincount(blocks[blocks >= 0], minlength=len(numbers)) - 1
    one, other = _block_pairs(document, name, places).T
    is_near = (firsts[other] - lasts[one] <= radius) & (firsts[one] - lasts[other] <= radius)
    found = [np.zeros([0, 2], np.int32)]
    for i, j in np.stack([one, other], axis=1)[is_near & has_tokens[one] & has_tokens[other]]:
        queries, keys = (np.arange(firsts[x], lasts[x] + 1) for x in (i, j))
        is_pair = np.abs(queries[:, np.newaxis] - keys) <= radius
        found.append(np.argwhere(is_pair) + [firsts[i], firsts[j]])
    return np.unique(np.concatenate(found).astype(np.int32), axis=0)


def _block_pairs(document, name, places):
    """The edges of a relation as pairs of included blocks: int [num_edges, 2]."""
    found = np.array(document.edges.get(name, ()), np.int64).reshape(-1, 2)
    if name in DERIVED:
        found = np.concatenate([found, DERIVED[name](document, places)])
    return found[(places[found] >= 0).all(axis=1)]


def mention_pairs(document, name, places, tokens):
    """Returns the pairs of long and global tokens of a relation.

    Args:
        document, name, places: as in `edges_of`.
        tokens: (texts, starts, ends), int [long_len] each: the characters of each token; the text
            of special tokens is -1.
    Returns:
        int32 [num_pairs, 2]: (long token, global token), sorted, each once.
    """
    texts, starts, ends = tokens
    pairs = [np.zeros([0, 2], np.int32)]
    for mention in document.mentions.get(name, ()):
        if places[mention.block] >= 0:
            is_in = (texts == mention.text) & (starts < mention.end) & (ends > mention.start)
            found = np.flatnonzero(is_in)
            pairs.append(np.stack([found, np.full_like(found, places[mention.block])], axis=1))
    return np.unique(np.concatenate(pairs).astype(np.int32), axis=0)


def _part_of(document, places):
    parents = np.array([block.parent for block in document.blocks], np.int64)
    parts = np.flatnonzero(parents >= 0)
    return np.stack([parts, parents[parts]], axis=1)


def _has_part(document, places):
    return _part_of(document, places)[:, ::-1]


def _row(document, places):
    return _cell_pairs(document, places, lambda cells: _overlap(cells, "rows"))


def _column(document, places):
    return _cell_pairs(document, places, lambda cells: _overlap(cells, "columns"))


def _header(document, places):
    def is_header_of(cells):
        is_header = np.array([cell.is_header for cell in cells], bool)
        shared = _overlap(cells, "rows") | _overlap(cells, "columns")
        return shared & ~is_header[:, np.newaxis] & is_header

    return _cell_pairs(document, places, is_header_of)


def _cell_pairs(document, places, holds):
    """Pairs of different included cells for which `holds`, table by table."""
    pairs = [np.zeros([0, 2], np.int64)]
    tables = {}
    for cell in document.cells:
        if places[cell.block] >= 0:
            tables.setdefault(cell.table, []).append(cell)
    for cells in tables.values():
        if len(cells) > _MOST_CELLS:
            raise ValueError(
                f"A table has {len(cells)} cells; relations between more than {_MOST_CELLS} are "
                "not made. Set `max_global_len`."
            )
        blocks = np.array([cell.block for cell in cells], np.int64)
        is_pair = holds(cells) & ~np.eye(len(cells), dtype=bool)
        pairs.append(blocks[np.argwhere(is_pair)])
    return np.concatenate(pairs)


def _overlap(cells, field):
    """Whether two cells share a row or column: bool [num_cells, num_cells]."""
    first, last = np.array([getattr(cell, field) for cell in cells], np.int64).T
    return (first[:, np.newaxis] <= last) & (first <= last[:, np.newaxis])


DERIVED = {
    "part_of": _part_of,
    "has_part": _has_part,
    "row": _row,
    "column": _column,
    "header": _header,
}
