"""Relations between blocks against a slow twin."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.text import arrangement
from etcmodel.text.documents import Block, Cell, Document, Mention

SPANS = st.tuples(st.integers(0, 4), st.integers(0, 3)).map(lambda x: (x[0], x[0] + x[1]))
CELLS = st.lists(st.tuples(st.integers(0, 1), SPANS, SPANS, st.booleans()), max_size=7)


def document_of(cells):
    """Two tables, blocks 0 and 1, and a block for each cell."""
    blocks = [Block("table"), Block("table")]
    blocks += [Block("cell", parent=table) for table, *_ in cells]
    places = [Cell(table, 2 + i, *rest) for i, (table, *rest) in enumerate(cells)]
    return Document((), (), tuple(blocks), cells=tuple(places))


def covered(span):
    return set(range(span[0], span[1] + 1))


def slow(document, name, places):
    """The edges, pair of blocks by pair of blocks."""
    cells = {cell.block: cell for cell in document.cells}
    edges = set()
    for one in range(len(document.blocks)):
        for other in range(len(document.blocks)):
            if name == "part_of" and document.blocks[one].parent == other:
                edges.add((one, other))
            if name == "has_part" and document.blocks[other].parent == one:
                edges.add((one, other))
            if one in cells and other in cells and one != other:
                a, b = cells[one], cells[other]
                share_row = bool(covered(a.rows) & covered(b.rows))
                share_column = bool(covered(a.columns) & covered(b.columns))
                holds = {
                    "row": share_row,
                    "column": share_column,
                    "header": (share_row or share_column) and b.is_header and not a.is_header,
                }
                if a.table == b.table and holds.get(name):
                    edges.add((one, other))
    return {(places[a], places[b]) for a, b in edges if places[a] >= 0 and places[b] >= 0}


@settings(max_examples=150)
@given(CELLS, st.sampled_from(sorted(arrangement.DERIVED)), st.integers(0, 1 << 9))
def test_relations_of_any_table_are_those_of_the_twin(cells, name, out):
    """Those blocks whose bit is set in `out` are not in."""
    document = document_of(cells)
    is_in = [not out >> block & 1 for block in range(len(document.blocks))]
    places = np.where(is_in, np.cumsum(is_in) - 1, -1)
    edges = arrangement.edges_of(document, name, places)
    found = [tuple(pair) for pair in edges.tolist()]
    assert len(found) == len(set(found)) and edges.dtype == np.int32
    assert set(found) == slow(document, name, places.tolist())


def test_a_stated_relation_may_have_the_name_of_a_derived_one():
    blocks = (Block("a"), Block("b", parent=0), Block("c"))
    document = Document((), (), blocks, edges={"part_of": ((2, 1),), "other": ((0, 2),)})
    places = np.array([3, 4, 5])
    assert arrangement.edges_of(document, "part_of", places).tolist() == [[5, 4], [4, 3]]
    assert arrangement.edges_of(document, "other", places).tolist() == [[3, 5]]
    assert arrangement.edges_of(document, "none", places).shape == (0, 2)


def test_mentions_are_pairs_of_the_tokens_that_they_touch():
    document = Document(
        ("It joins the Thames.",),
        ("x",),
        (Block("a", 0, 0, 20), Block("b"), Block("c")),
        mentions={"to": (Mention(0, 12, 19, 1), Mention(0, 9, 14, 1), Mention(0, 0, 2, 2))},
    )
    texts = np.array([-1, 0, 0, 0, 0, 0, -1])
    starts, ends = np.array([[-1, 0, 3, 9, 13, 19, -1], [-1, 2, 8, 12, 19, 20, -1]])
    places = np.array([1, 2, -1])
    pairs = arrangement.mention_pairs(document, "to", places, (texts, starts, ends))
    assert pairs.tolist() == [[3, 2], [4, 2]]


def test_a_table_beyond_all_measure_is_refused(monkeypatch):
    monkeypatch.setattr(arrangement, "_MOST_CELLS", 3)
    document = document_of([(0, (0, 0), (0, 0), False)] * 4)
    message = "A table has 4 cells; relations between more than 3 are not made"
    with pytest.raises(ValueError, match=re.escape(message)):
        arrangement.edges_of(document, "row", np.arange(6))


@given(CELLS, st.data())
@settings(max_examples=60)
def test_tokens_of_related_blocks_are_related_within_the_radius(cells, data):
    document = document_of(cells)
    counts = [data.draw(st.integers(0, 3)) for _ in document.blocks]
    places = np.array([data.draw(st.sampled_from([-1, i])) for i in range(len(counts))])
    blocks = [-1, *(i for i, n in enumerate(counts) for _ in range(n) if places[i] >= 0), -1]
    radius = data.draw(st.integers(1, 4))
    for name in ("row", "has_part"):
        related = {tuple(x) for x in arrangement.edges_of(document, name, places).tolist()}
        expected = [
            [i, j]
            for i, one in enumerate(blocks)
            for j, other in enumerate(blocks)
            if (one, other) in related and abs(i - j) <= radius
        ]
        found = arrangement.long_edges_of(document, name, places, np.array(blocks), radius)
        assert found.tolist() == expected and found.dtype == np.int32


def test_no_tokens_have_no_relations():
    document = document_of([])
    places = np.full(len(document.blocks), -1)
    found = arrangement.long_edges_of(document, "row", places, np.zeros(0, int), 2)
    assert found.shape == (0, 2)
