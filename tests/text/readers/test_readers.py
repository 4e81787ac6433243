"""From a user's input to blocks."""

import bz2
import gzip
import json

import numpy as np
import pytest

from etcmodel.text import documents, readers
from etcmodel.text.sentence_splitting import sentence_splitter

SPLIT = sentence_splitter("simple")


def read(**fields):
    return readers.read(fields, SPLIT)


def blocks_of(document):
    """(kind, text, parent) of each block."""
    return [(x.kind, document.block_text(x), x.parent) for x in document.blocks]


def test_a_text_has_a_block_for_each_sentence():
    document = readers.read("It rains.  Stay\nin! ", SPLIT)
    assert blocks_of(document) == [("sentence", "It rains.", -1), ("sentence", "Stay\nin!", -1)]
    assert document.texts == ("It rains.  Stay\nin! ",)
    assert document.text_names == ("example.text",)
    assert readers.read("", SPLIT).blocks == ()
    assert readers.read(b"caf\xc3\xa9", SPLIT).texts == ("café",)


def test_a_question_comes_first_and_each_document_holds_its_title_and_sentences():
    document = read(
        question="Who?", documents=["A. B.", {"title": "T", "text": "C"}], id=7, extra={"y": 1}
    )
    assert blocks_of(document) == [
        ("question", "Who?", -1),
        ("document", "", -1),
        ("sentence", "A.", 1),
        ("sentence", "B.", 1),
        ("document", "", -1),
        ("title", "T", 4),
        ("sentence", "C", 4),
    ]
    assert document.text_names[1:] == (
        "example.documents[0].text",
        "example.documents[1].title",
        "example.documents[1].text",
    )
    assert (document.example_id, document.extra) == ("7", {"y": 1})


def test_sections_paragraphs_and_sentences_are_nested():
    document = read(
        title="T",
        sections=[
            {
                "title": "One",
                "paragraphs": ["A. B.", ["C. c", "D"]],
                "sections": [{"sentences": ["E", " "]}],
            }
        ],
    )
    assert blocks_of(document) == [
        ("title", "T", -1),
        ("section", "", -1),
        ("title", "One", 1),
        ("paragraph", "", 1),
        ("sentence", "A.", 3),
        ("sentence", "B.", 3),
        ("paragraph", "", 1),
        ("sentence", "C. c", 6),
        ("sentence", "D", 6),
        ("section", "", 1),
        ("sentence", "E", 9),
    ]


def test_a_table_has_a_block_for_each_cell_that_is_not_empty():
    document = read(
        table={"caption": "Rivers", "header": ["name", "km"], "rows": [["Wey", 140], [None, 2.5]]}
    )
    assert blocks_of(document) == [
        ("table", "", -1),
        ("caption", "Rivers", 0),
        ("header", "name", 0),
        ("header", "km", 0),
        ("cell", "Wey", 0),
        ("cell", "140", 0),
        ("cell", "2.5", 0),
    ]
    assert document.cells == (
        documents.Cell(0, 2, (0, 0), (0, 0), True),
        documents.Cell(0, 3, (0, 0), (1, 1), True),
        documents.Cell(0, 4, (1, 1), (0, 0)),
        documents.Cell(0, 5, (1, 1), (1, 1)),
        documents.Cell(0, 6, (2, 2), (1, 1)),
    )


def test_rows_of_a_table_may_name_their_columns():
    rows = [{"name": "Wey", "km": 140}, {"km": 7}]
    by_name = read(table={"rows": rows})
    assert blocks_of(by_name) == blocks_of(
        read(table={"header": ["name", "km"], "rows": [["Wey", 140], [None, 7]]})
    )
    without = read(table={"rows": [["a", "b"]]})
    assert [cell.rows for cell in without.cells] == [(0, 0), (0, 0)]


def test_a_graph_has_a_block_for_each_node_and_its_edges_by_type():
    document = read(
        nodes=[{"id": 1, "text": "a"}, {"id": "x", "kind": "person"}, {"id": 3, "text": "c"}],
        edges=[{"from": 1, "to": "x", "type": "knows"}, [3, 1, "knows"], ["x", 3]],
    )
    assert blocks_of(document) == [("node", "a", -1), ("person", "", -1), ("node", "c", -1)]
    assert [block.name for block in document.blocks] == ["1", "x", "3"]
    assert document.edges == {"knows": ((0, 1), (2, 0)), "edge": ((1, 2),)}
    assert blocks_of(read(nodes={"p": "a"})) == [("node", "a", -1)]


@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_are_read_one_by_one(tmp_path, packed):
    path = tmp_path / ("lines.jsonl.gz" if packed else "lines.jsonl")
    content = json.dumps({"text": "a"}) + "\n\n" + json.dumps({"question": "b?"})
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    assert [*readers.read_json_lines(path)] == [
        (f"{path}, line 1", {"text": "a"}),
        (f"{path}, line 3", {"question": "b?"}),
    ]


@pytest.mark.parametrize(
    ("name", "content", "places"),
    [
        ("a.json", b'\xef\xbb\xbf[{"text": "a"},\n {"text": "b"}]', ("element 0", "element 1")),
        ("a.CSV.BZ2", bz2.compress(b"text\na\nb\n"), ("line 2", "line 3")),
        ("a.tsv", b"text\tquestion\na\t\nb\t\n", ("line 2", "line 3")),
    ],
)
def test_other_layouts_are_read_likewise(tmp_path, name, content, places):
    (tmp_path / name).write_bytes(content)
    found = [*readers.read_json_lines(tmp_path / name)]
    assert [where for where, _ in found] == [f"{tmp_path / name}, {place}" for place in places]
    assert [example["text"] for _, example in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1]", "line 2 must hold a JSON object, not an array"),
        (b'{"text": ', "line 2 is not valid JSON: Expecting value at line 1"),
        (b"[" * 10_000, "line 2 is not valid JSON: nested deeper than 100 levels"),
        (b'{"a": "\xff"}', "line 2 is not valid JSON: invalid UTF-8 at byte 8"),
        (b'{"a": ' + b"9" * 5000 + b"}", "line 2 is not valid JSON: an integer of too many digits"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, message):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"text": "a"}\n' + line + b"\n")
    with pytest.raises(ValueError, match=f"^.*lines.jsonl, {message}") as error:
        [*readers.read_json_lines(path)]
    assert "\n" not in str(error.value)


def test_a_broken_gzip_file_is_named(tmp_path):
    path = tmp_path / "lines.jsonl.gz"
    whole = gzip.compress(b'{"text": "a"}\n' * 9)
    for content in (whole[:-9], whole[:12] + b"\xff" * 9):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"lines.jsonl.gz: broken gzip file after line \d: "):
            [*readers.read_json_lines(path)]


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (7, "`example` must be a text, a dict of fields or a Document. Received: int 7"),
        (
            {"txt": "a"},
            r"`example` has unknown fields \['txt'\]. There are: \['documents', 'edges'",
        ),
        ({}, "`example` has no content. Give it one of"),
        ({"id": 3, "text": None}, "`example` has no content"),
        ({"text": ["a"]}, r"`example.text` must be a string. Received: list \['a'\]"),
        ({"documents": "a"}, "`example.documents` must be a list. Received: str 'a'"),
        ({"documents": ["a", 3]}, r"`example.documents\[1\]` must be a text or a dict"),
        ({"documents": [{"titel": "a"}]}, r"documents\[0\]` has unknown fields \['titel'\]"),
        ({"sections": [{"paragraphs": [[1]]}]}, r"sections\[0\].paragraphs\[0\]\[0\]` must be a"),
        ({"sections": ["a"]}, r"`example.sections\[0\]` must be an object"),
        ({"table": [["a"]]}, "`example.table` must be an object with `rows`"),
        ({"table": {"header": ["a"]}}, "`example.table` lacks the field `rows`"),
        ({"table": {"rows": [["a", "b"], ["c"]]}}, r"rows\[1\]` has 1 cells in a table of 2 col"),
        ({"table": {"rows": [["a"], {"b": 1}]}}, r"rows\[1\]` has unknown fields \['b'\]"),
        ({"table": {"rows": [5]}}, r"rows\[0\]` must be a list of cells, or an object by column"),
        ({"table": {"rows": [[{}]]}}, r"rows\[0\]\[0\]` must be a string. Received: dict {}"),
        ({"nodes": [{"id": 1}, {"id": 1}]}, r"nodes\[1\].id` is there twice: 1"),
        ({"nodes": [{"text": "a"}]}, r"nodes\[0\].id` must be the id of a node"),
        ({"nodes": {"a": "x"}, "edges": [["a", "b"]]}, r"edges\[0\].to` names no node: 'b'"),
        ({"nodes": {"a": "x"}, "edges": [["a"]]}, r"edges\[0\]` must be \[from, to\]"),
        ({"edges": [["a", "b"]]}, "`example` has `edges` but no `nodes`"),
        ({"nodes": {"a": "x"}, "edges": {}}, r"example.edges` must be a list. Received: dict"),
        ({"nodes": {"a": 0}}, r"nodes\['a'\].text` must be a string. Received: int 0"),
        ({"text": "a", "documents": ""}, "`example.documents` must be a list. Received: str ''"),
        ({"html": 3}, "`example.html` must be a page of HTML"),
        ({"text": "a", "extra": 1}, "`example.extra` must be an object"),
        (
            {"text": "a", "id": True},
            "`example.id` must be a string or a whole number. Re.*bool True",
        ),
        ({"text": "a", "id": 1.0}, "`example.id` must be a string or a whole number"),
        ({"text": "a", "id": ["x"]}, "`example.id` must be a string or a whole number"),
    ],
)
def test_what_is_no_example_is_refused_in_a_line_that_names_the_field(example, message):
    with pytest.raises(ValueError, match=message) as error:
        readers.read(example, SPLIT)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_whole_number_is_an_id_as_its_digits():
    ids = [read(text="a", id=value).example_id for value in ("7", 7, np.int64(7), b"7")]
    assert ids == ["7"] * 4


def test_null_is_as_good_as_a_field_that_is_missing():
    nodes = [{"id": "a", "text": None, "kind": None}]
    edges = [{"from": "a", "to": "a", "type": None}]
    given = {"id": None, "extra": None, "documents": None, "text": None, "table": None}
    document = read(nodes=nodes, edges=edges, **given)
    assert document == read(nodes=[{"id": "a"}], edges=[["a", "a"]])
    assert document.example_id == ""


def test_sections_may_not_be_nested_without_end():
    section = {"text": "a"}
    for _ in range(60):
        section = {"sections": [section]}
    with pytest.raises(ValueError, match="is nested deeper than 50 levels"):
        readers.read(section, SPLIT)


def test_documents_of_ones_own_are_checked():
    block = documents.Block("node", 0, 0, 3)
    assert readers.read(documents.Document(("abc",), ("x",), (block,)), SPLIT).blocks == (block,)
    for changes, message in (
        ({"blocks": (block._replace(end=4),)}, r"`blocks\[0\]` must lie within its text of 3 ch"),
        ({"blocks": (block._replace(text=1),)}, r"`blocks\[0\].text` must be one of 1 texts"),
        ({"blocks": (block._replace(parent=0),)}, r"`blocks\[0\].parent` must be a block before"),
        (
            {"edges": {"to": ((0, 1),)}},
            r"`edges\['to'\]\[0\]` must be one of 1 blocks. Received: 1",
        ),
        ({"blocks": (block, documents.Block("question"))}, r"`blocks\[1\]` is a question behind"),
    ):
        with pytest.raises(ValueError, match=message):
            documents.Document(
                **{"texts": ("abc",), "text_names": ("x",), "blocks": (block,), **changes}
            )
