"""Texts from JSON lines, tables and folders, each with its place."""

import csv
import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.preprocessing import raw_files


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def rows(path):
    return list(raw_files.read_text_rows(path))


def test_json_lines_have_places_and_a_broken_line_is_a_problem(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "one"}\n\n{"text": \n[1]\n')
    first, second, third = rows(path)
    assert first == {"place": "line 1", "id": "a.jsonl:1", "fields": {"text": "one"}}
    assert second["place"] == "line 3" and "malformed JSON" in second["problem"]
    assert third == {"place": "line 4", "id": "a.jsonl:4", "fields": [1]}


def test_a_table_is_read_by_its_header(tmp_path):
    text = '\ufefflabel,text\nyes,"a ""quoted"", long\ntext"\n\nno,short\n'
    plain = rows(write(tmp_path / "a.csv", text))
    assert plain == [
        {
            "place": "line 2",
            "id": "a.csv:2",
            "fields": {"label": "yes", "text": 'a "quoted", long\ntext'},
        },
        {"place": "line 5", "id": "a.csv:5", "fields": {"label": "no", "text": "short"}},
    ]
    packed = rows(write(tmp_path / "a.csv.gz", gzip.compress(text.encode())))
    assert [row["fields"] for row in packed] == [row["fields"] for row in plain]
    tabs = rows(write(tmp_path / "a.tsv", "text\tlabel\na, b\tyes\n"))
    assert tabs[0]["fields"] == {"text": "a, b", "label": "yes"}


def test_a_byte_order_mark_before_a_quote_is_not_of_the_name(tmp_path):
    text = '\ufeff"id","a, text"\r\n"7","\ufeffgood"\r\n'
    (row,) = rows(write(tmp_path / "a.csv", text))
    assert row["fields"] == {"id": "7", "a, text": "\ufeffgood"}


def test_rows_that_do_not_fit_are_problems_and_others_are_read(tmp_path):
    path = write(tmp_path / "a.csv", b"text,label\na,b,c\n\xff,x\nfine,y\n")
    wide, no_utf8, fine = rows(path)
    assert wide == {"place": "line 2", "problem": "the row has 3 columns, the header 2"}
    assert no_utf8["place"] == "line 3" and "invalid UTF-8" in no_utf8["problem"]
    assert fine["fields"] == {"text": "fine", "label": "y"}


def test_a_quote_without_an_end_would_swallow_the_rest_of_the_file(tmp_path):
    path = write(tmp_path / "b.csv", 'text,label\nfine,yes\n"no end,yes\nlost,no\n')
    with pytest.raises(ValueError, match="b.csv: line 3: a quote is opened and never closed"):
        rows(path)


def test_long_fields_are_read(tmp_path):
    text = "word " * 100_000
    assert rows(write(tmp_path / "a.csv", f"text\n{text}\n"))[0]["fields"] == {"text": text}


@pytest.mark.parametrize("content", ["", "text,text\na,b\n", '"text\n', b"t\xff\na\n"])
def test_a_table_without_a_proper_header_is_refused(tmp_path, content):
    with pytest.raises(ValueError, match="a.csv: "):
        rows(write(tmp_path / "a.csv", content))


def test_a_folder_has_a_sub_folder_for_each_label(tmp_path):
    write(tmp_path / "data" / "pos" / "2.txt", "two")
    write(tmp_path / "data" / "pos" / "1.txt", "\ufeffone")
    write(tmp_path / "data" / "neg" / "1.txt.gz", gzip.compress(b"packed"))
    write(tmp_path / "data" / "neg" / "2.txt", b"\xff")
    write(tmp_path / "data" / "neg" / "3.txt.gz", gzip.compress(b"cut off")[:-9])
    write(tmp_path / "data" / "neg" / "notes.md", "left out")
    write(tmp_path / "data" / "free.txt", "no label")
    assert rows(str(tmp_path / "data") + "/") == rows(str(tmp_path / "data"))
    *found, cut, one, two = rows(str(tmp_path / "data"))
    assert cut["place"] == "neg/3.txt.gz" and "broken gzip file" in cut["problem"]
    assert [*found, one, two] == [
        {"place": "free.txt", "id": "free.txt", "text": "no label", "label": None},
        {"place": "neg/1.txt.gz", "id": "neg/1.txt.gz", "text": "packed", "label": "neg"},
        {
            "place": "neg/2.txt",
            "problem": "invalid UTF-8 at byte 1; the file seems to be in another encoding, such as "
            "Latin-1: save it in UTF-8, as `iconv -f latin1 -t utf-8` does",
        },
        {"place": "pos/1.txt", "id": "pos/1.txt", "text": "one", "label": "pos"},
        {"place": "pos/2.txt", "id": "pos/2.txt", "text": "two", "label": "pos"},
    ]


cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


@settings(max_examples=30)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
def test_what_a_writer_of_tables_writes_is_read(tmp_path_factory, written):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
        [("text", "label"), *written]
    )
    path = write(tmp_path_factory.mktemp("tables") / "a.csv", file.getvalue())
    assert [tuple(row["fields"].values()) for row in rows(path)] == written
