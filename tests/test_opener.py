"""Raw files of every layout, packing and name: the same rows, or an error that says what it is."""

import bz2
import csv
import gzip
import io
import itertools
import json
import logging
import lzma
import os
import re
import sys
import tarfile
import threading
import tracemalloc

import pyarrow
import pyarrow.parquet
import pytest
import tensorflow as tf
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from etcmodel import bounded_json, extras, opener

PACKINGS = {
    "": lambda content: content,
    ".gz": lambda content: gzip.compress(content, 1),
    ".bz2": bz2.compress,
    ".xz": lambda content: lzma.compress(content, preset=0),
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
BOM = b"\xef\xbb\xbf"
CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\t\0"), max_size=8)
ROWS = st.lists(st.fixed_dictionaries({"text": CELLS, "label": CELLS}), min_size=1, max_size=5)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def rows(path, **options):
    """What is read: (values, problems)."""
    found = list(opener.read_rows(path, **{"table": opener.Table(), **options}))
    return [x.value for x in found if not x.problem], [x.problem for x in found if x.problem]


def as_lines(values):
    return "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values).encode()


def as_table(delimiter, quotes):
    def written(values):
        file = io.StringIO()
        if quotes:
            writer = csv.DictWriter(file, values[0], delimiter=delimiter, quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(values)
            return file.getvalue().encode()
        cells = [list(values[0]), *([value[x] for x in values[0]] for value in values)]
        return "".join(f"{delimiter.join(row)}\n" for row in cells).encode()

    return written


def as_columns(write_table):
    def written(values):
        file = io.BytesIO()
        write_table(pyarrow.Table.from_pylist(values), file)
        return file.getvalue()

    return written


def write_arrow(make):
    def write_table(table, file):
        with make(file, table.schema) as writer:
            writer.write_table(table)

    return write_table


# How rows are written, and names that such a file may have.
TEXTS = {
    "JSON lines": (as_lines, ["a.jsonl", "A.JSONL", "a.ndjson", "a.json", "a"]),
    "a JSON array": (lambda x: json.dumps(x).encode(), ["a.json", "A.JSON", "a.jsonl", "a.txt"]),
    "a JSON array, indented": (lambda x: json.dumps(x, indent=2).encode(), ["a.json", "a"]),
    "JSON objects, indented": (
        lambda x: "\n".join(json.dumps(one, indent=1) for one in x).encode(),
        ["a.json", "a.JSONL"],
    ),
    "TSV": (as_table("\t", quotes=False), ["a.tsv", "A.TSV", "a.txt", "a.csv"]),
    "CSV": (as_table(",", quotes=True), ["a.csv", "A.Csv", "a.txt"]),
    "CSV with semicolons": (as_table(";", quotes=True), ["a.csv", "a.dat"]),
}
COLUMNS = {
    "Parquet": as_columns(pyarrow.parquet.write_table),
    "an Arrow file": as_columns(write_arrow(pyarrow.ipc.new_file)),
    "an Arrow stream": as_columns(write_arrow(pyarrow.ipc.new_stream)),
}


@given(ROWS, st.sampled_from([*TEXTS]), st.sampled_from([*PACKINGS]), st.booleans(), st.data())
def test_rows_are_the_same_in_every_layout_packing_and_name(
    tmp_path_factory, values, layout, packing, has_mark, data
):
    make, names = TEXTS[layout]
    ending = data.draw(st.sampled_from([packing, packing.upper(), "", ".gz"]))
    name = data.draw(st.sampled_from(names)) + ending
    content = PACKINGS[packing](BOM * has_mark + make(values))
    path = write(tmp_path_factory.mktemp("rows") / name, content)
    assert rows(path) == (values, [])


@given(ROWS, st.sampled_from(["a.jsonl", "a.json", "a.txt", "a"]), st.data())
def test_lines_that_are_cut_off_anywhere_cost_those_lines(tmp_path_factory, values, name, data):
    texts = [json.dumps(value) for value in values]
    cuts = st.sampled_from(texts).flatmap(
        lambda text: st.integers(1, len(text) - 1).map(lambda end: text[:end])
    )
    cut = data.draw(st.lists(cuts, max_size=4))
    lines = data.draw(st.permutations([*enumerate(texts), *((None, text) for text in cut)]))
    content = "\n".join(text for _, text in lines)
    found, problems = rows(write(tmp_path_factory.mktemp("cut") / name, content))
    assert found == [values[index] for index, _ in lines if index is not None]
    assert len(problems) == len(cut)


@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "A.DATA", "a.jsonl"])
def test_columns_are_rows_likewise(tmp_path, layout, name):
    values = [{"text": f"text {i}", "label": None, "tags": ["é", str(i)]} for i in range(200)]
    path = write(tmp_path / name, COLUMNS[layout](values))
    assert rows(path) == (values, [])
    *_, last = opener.read_rows(path)
    assert last.place == "row 200"


def test_values_of_columns_are_those_of_json_or_problems(tmp_path):
    table = {
        "raw": [b"caf\xc3\xa9", b"\xff"],
        "day": pyarrow.array([18_000, 18_001], pyarrow.date32()),
        "nested": [[{"a": 1}], []],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    values, problems = rows(str(tmp_path / "a.parquet"))
    assert values == [{"raw": "café", "day": "2019-04-14", "nested": [{"a": 1}]}]
    assert len(problems) == 1 and "can't decode byte 0xff" in problems[0]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (pyarrow.timestamp("us"), 2**62),
        (pyarrow.timestamp("us", tz="Foo/Bar"), 1),
        (pyarrow.date32(), 2**30),
        (pyarrow.duration("s"), 2**62),
    ],
)
def test_a_value_that_python_has_not_costs_its_row(tmp_path, kind, bad):
    column = pyarrow.array([None, bad, None], pyarrow.int32() if bad == 2**30 else pyarrow.int64())
    table = pyarrow.table({"a": [1, 2, 3], "time": column.cast(kind, safe=False)})
    with pyarrow.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    values, problems = rows(str(tmp_path / "a.arrow"))
    assert [value["a"] for value in values] == [1, 3]
    assert len(problems) == 1 and problems[0].startswith("it cannot be read: ")


class TestTables:
    TEXTS = ("plain zero", '" alone', "plain one", "plain two", 'who said "', "last")
    CONTENT = "text\tlabel\n" + "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(TEXTS))

    def test_a_quote_in_cells_between_tabs_is_a_character(self, tmp_path):
        values, problems = rows(write(tmp_path / "a.tsv", self.CONTENT))
        assert values == [{"text": x, "label": str(i % 2)} for i, x in enumerate(self.TEXTS)]
        assert not problems

    def test_cells_of_several_lines_are_counted_and_told(self, tmp_path, caplog):
        path = write(tmp_path / "a.tsv", self.CONTENT)
        values, problems = rows(path, table=opener.Table(quoting=True))
        assert len(values) + len(problems) == 3
        assert caplog.messages == [
            f"{path}: 1 of 3 rows, the first in line 3, have a cell of several lines. If a quote "
            "was left open there, read with --quoting=false."
        ]

    def test_quotes_that_are_kept_are_counted_and_told(self, tmp_path, caplog):
        path = write(tmp_path / "a.tsv", 'text\tlabel\n"a ""b"""\tc\nd\te\n')
        assert rows(path)[0][0] == {"text": '"a ""b"""', "label": "c"}
        (message,) = caplog.messages
        assert "1 of 2 rows, the first in line 2, have a cell in quotes" in message
        caplog.clear()
        unquoted, _ = rows(path, table=opener.Table(quoting=True))
        assert unquoted[0] == {"text": 'a "b"', "label": "c"} and not caplog.messages

    @pytest.mark.parametrize(
        ("name", "header", "given", "delimiter"),
        [
            ("a.csv", b"a,b;c", None, ","),
            ("a.csv", b"a;b", None, ";"),
            ("a.csv", b"a\tb", None, "\t"),
            ("a.csv", b"a", None, ","),
            ("a.tsv", b"a,b", None, ","),
            ("a.tsv", b"a", None, "\t"),
            ("a.txt", b"a,b\tc", None, "\t"),
            ("a.csv", b"a,b", "|", "|"),
        ],
    )
    def test_the_header_tells_the_delimiter_and_that_the_quotes(
        self, name, header, given, delimiter
    ):
        found = opener.Table(given).completed(header, f".{name.partition('.')[2]}")
        assert found == opener.Table(delimiter, quoting=delimiter != "\t")

    @pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
    def test_what_cannot_be_a_delimiter_is_refused(self, delimiter):
        with pytest.raises(ValueError, match="`delimiter` must be one character"):
            opener.Table(delimiter)

    def test_a_column_in_brackets_is_no_json(self, tmp_path):
        path = write(tmp_path / "a.csv", "[id],text\n1,a\n")
        assert rows(path) == ([{"[id]": "1", "text": "a"}], [])

    @pytest.mark.parametrize("quoting", [False, True])
    def test_a_line_beyond_the_bounds_is_a_problem_of_its_own(self, tmp_path, monkeypatch, quoting):
        monkeypatch.setattr(bounded_json, "MAX_BYTES", 1 << 21)
        long = "x," * (3 << 20)
        path = write(tmp_path / "a.csv", f"text,label\n{long}\na,b\n")
        values, (problem,) = rows(path, table=opener.Table(quoting=quoting))
        assert values == [{"text": "a", "label": "b"}] and "longer than" in problem


class TestJson:
    @pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a"])
    @pytest.mark.parametrize("cut", ['{"a": "cut o', '{"a": [1, ', "garbage", '{"a": "\xff"}'])
    @pytest.mark.parametrize("place", [0, 1, 3])
    def test_a_bad_line_costs_that_line(self, tmp_path, name, cut, place):
        lines = [json.dumps({"a": number}) for number in range(3)]
        lines.insert(place, cut)
        path = write(tmp_path / name, "\n".join(lines).encode("latin-1"))
        values, problems = rows(path)
        assert values == [{"a": 0}, {"a": 1}, {"a": 2}] and len(problems) == 1

    @pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.txt", "a"])
    @pytest.mark.parametrize(
        ("content", "num_bad"),
        [
            ('{"a": "x\n{"a": "y\n{"a": 2}\n{"a": 3}', 2),
            ('{"a": [1,\n{"a": [1,\n{"a": 2}\n{"a": 3}', 2),
            ('{"a": 1},\n{"a": 4},\n{"a": 2}\n{"a": 3}', 2),
            ('garbage, x\nmore\n{"a": 2}\n{"a": 3}', 2),
            ('{"a": 2}\n{"a": "x\n{"a": "y\n{"a": 3}', 2),
        ],
    )
    def test_bad_lines_at_the_beginning_cost_those_lines(self, tmp_path, name, content, num_bad):
        values, problems = rows(write(tmp_path / name, content))
        assert values == [{"a": 2}, {"a": 3}] and len(problems) == num_bad

    @pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a"])
    @pytest.mark.parametrize("member", [None, "Data"])
    @pytest.mark.parametrize(
        "content",
        [
            '{"a": 1}\n{\n"a": 2\n}',
            '{\n"a": 1\n}\n{"a": 2}',
            '{"a":\n1}{"a":\n2\n}',
            '{"a": 1} {"a": 2}',
        ],
    )
    def test_objects_are_read_wherever_lines_break(self, tmp_path, name, content, member):
        path = write(tmp_path / name, content)
        assert rows(path, member=member) == ([{"a": 1}, {"a": 2}], [])

    @pytest.mark.parametrize(
        "content",
        [
            '{"V":1,"Data":[{"a":1},{"a":2}]}',
            '{"V":1,"Data":\n[{"a":1},{"a":2}]\n}',
            '{"V":1,"Data":[\n{"a":1},\n{"a":2}\n]}',
            '{\n"V":1,\n"Data":[\n{"a":1}\n,\n{"a":2}\n]}',
        ],
    )
    @pytest.mark.parametrize("size", [0, 2 * opener.BLOCK])
    def test_a_member_is_read_wherever_lines_break(self, tmp_path, content, size):
        longer = content.replace("]", "]" + " " * size)
        assert rows(write(tmp_path / "a.json", longer), member="Data")[0] == [{"a": 1}, {"a": 2}]

    def test_several_objects_of_a_line_are_as_many_parsed_or_not(self, tmp_path):
        content = '{"a": "} {"}{"a": 2}\n{"a": "} {"}\n{"a": 1} {"a"\n{"a": 1}{"a": 2} 3\n'
        path = write(tmp_path / "a.jsonl", content)
        parsed = list(opener.read_rows(path))
        assert [row.number for row in parsed] == [1, 1, 2, 3, 4]
        assert [bool(row.problem) for row in parsed] == [False] * 3 + [True] * 2
        texts = list(opener.read_rows(path, is_parsed=False))
        assert [row.number for row in texts] == [1, 1, 2, 3, 4]
        for row, text in zip(parsed, texts, strict=True):
            if row.problem:
                with pytest.raises(ValueError, match="malformed JSON at column"):
                    opener.load_json_line(text.value)
            else:
                assert opener.load_json_line(text.value) == row.value

    @pytest.mark.parametrize("name", ["part-00000", "a.json", "a.jsonl", "a.txt", "a.json.gz"])
    @pytest.mark.parametrize("content", [b"", b" \n\n", BOM])
    def test_an_empty_file_has_no_rows(self, tmp_path, name, content):
        path = write(tmp_path / name, content)
        for options in ({}, {"table": None}, {"member": "Data"}, {"is_parsed": False}):
            assert rows(path, **options) == ([], [])

    @pytest.mark.parametrize("name", ["a.json", "a.JSON.gz"])
    def test_a_name_of_json_makes_no_table(self, tmp_path, name):
        with pytest.raises(ValueError, match="expected a JSON array or JSON objects"):
            rows(write(tmp_path / name, "garbage, x\nmore, y\n"))

    def test_lines_may_begin_anew_with_a_byte_order_mark(self, tmp_path):
        both = BOM + b'{"a": 1}\n' + BOM + b'{"a": 2}\n'
        assert rows(write(tmp_path / "a.jsonl", both)) == ([{"a": 1}, {"a": 2}], [])

    @pytest.mark.parametrize("is_parsed", [True, False])
    @pytest.mark.parametrize("make", [as_lines, lambda x: json.dumps({"D": 0, "Data": x}).encode()])
    def test_examples_may_be_in_a_member_or_not(self, tmp_path, make, is_parsed):
        values = [{"a": 1}, {"Data": 2}]
        path = write(tmp_path / "a.json", make(values))
        found, _ = rows(path, member="Data", is_parsed=is_parsed)
        assert [x if is_parsed else json.loads(x) for x in found] == values


def tar(form):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        archive.addfile(tarfile.TarInfo("a.jsonl"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"a": 1}]'.encode("utf-16"), "the text is in UTF-16: save it in UTF-8, as iconv"),
        ('[{"a": 1}]'.encode("utf-16-be"), "the text is in UTF-16"),
        ("text,label\n".encode("utf-32"), "the text is in UTF-32"),
        ("text,label\n".encode("utf-32-le"), "the text is in UTF-32"),
        (b"PK\x03\x04 and more", "this is a ZIP archive or a spreadsheet: unpack it, or save it"),
        (b"%PDF-1.7", "this is a PDF file"),
        (tar(tarfile.USTAR_FORMAT), "this is a tar archive: unpack it first"),
        (tar(tarfile.GNU_FORMAT), "this is a tar archive: unpack it first"),
        (b"FEA1\0\0\0\0\x01", "this is a Feather file of version 1: write it as Parquet"),
        (b"PARE\x05\x02\0\0", "this is an encrypted Parquet file: decrypt it first"),
        (gzip.compress(b"[]", mtime=0), "it is packed twice, the second time by gzip"),
        (COLUMNS["an Arrow file"]([{"a": 1}]), "a packed file of Parquet or Arrow"),
        (b'"text"', "expected a JSON array or JSON objects, or a table whose first line names its"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_name(tmp_path, content, message):
    packed = write(tmp_path / "a.txt.gz", gzip.compress(content))
    with pytest.raises(ValueError, match=f"^{packed}: {message}"):
        rows(packed)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt"])
def test_a_table_whose_lines_end_with_cr_alone_is_told_so(tmp_path, name):
    text = "text,label\ra b,x\rc d,y\r".replace(",", "\t" if name == "a.tsv" else ",")
    path = write(tmp_path / name, text.encode())
    with pytest.raises(ValueError) as raised:
        rows(path, table=opener.Table())
    told = "the lines of the table end with CR alone: end them with LF, as `tr '\\r' '\\n'` does"
    assert str(raised.value) == f"{path}: {told}"
    found, _ = rows(write(tmp_path / name, text.replace("\r", "\r\n").encode()))
    assert found == [{"text": "a b", "label": "x"}, {"text": "c d", "label": "y"}]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_header_of_one_line_may_have_a_cr_within_quotes(tmp_path, end):
    assert rows(write(tmp_path / "a.csv", f'"a\rtext",label{end}'.encode())) == ([], [])
    for content in (b'"a text",label\r"b",x\r', b'"text"\r"a"\r'):
        cut = write(tmp_path / "b.csv", content)
        with pytest.raises(ValueError, match="the lines of the table end with CR alone"):
            rows(cut, table=opener.Table())


LATIN_1 = (
    "; the file seems to be in another encoding, such as Latin-1: save it in UTF-8, as "
    "`iconv -f latin1 -t utf-8` does"
)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (b"caf\xe9", LATIN_1),
        (b"caf\xe9 cr\xe8me", LATIN_1),
        (b"caf\xe9 cr\xc3\xa8me", ""),  # Damaged UTF-8.
    ],
)
def test_a_text_that_is_no_utf8_at_all_is_told_to_be_in_another_encoding(tmp_path, line, advice):
    path = write(tmp_path / "a.txt", line)
    for read, where in ((opener.read_text, "byte"), (opener.read_entries, "character")):
        with pytest.raises(ValueError, match=f"invalid UTF-8 at {where} 4{advice}$"):
            read(path)
    for name, content in (("a.csv", b"text\n" + line), ("a.jsonl", b'{"text": "' + line + b'"}')):
        _, (problem,) = rows(write(tmp_path / name, content))
        assert re.fullmatch(rf"invalid UTF-8 at character \d+{advice}", problem)
    for content in (b'[{"text": "' + line + b'"}]', b'{"text":\n"' + line + b'"}\n{"text": "a"}'):
        place = rf"line \d: invalid UTF-8 at character \d+{advice}$"
        with pytest.raises(ValueError, match=place):
            rows(write(tmp_path / "a.json", content))


@pytest.mark.parametrize(
    "text",
    [
        "PARENTS beware",
        "PAR1 is a magic",
        "ARROW1 too",
        "FEA1, as",
        "a" * 257 + "ustard, or mustard",
    ],
)
def test_prose_that_begins_as_other_files_do_is_prose(tmp_path, text):
    path = write(tmp_path / "a.txt", f"{text}\n")
    (row,) = opener.read_rows(path, may_be_prose=True)
    assert (row.unit, row.value) == (opener.PROSE, f"{text}\n")
    assert opener.read_text(path) == f"{text}\n"


@pytest.mark.parametrize("packing", [*PACKINGS][1:])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_packed_file_that_is_cut_or_damaged_is_told_with_the_place(tmp_path, packing, name):
    numbers = (f"{number},{number**9}" for number in range(20_000))
    content = "\n".join(["a,b", *numbers] if name == "a.csv" else map(json.dumps, numbers))
    whole = PACKINGS[packing](content.encode())
    flipped = bytearray(whole)
    flipped[len(whole) // 2 : len(whole) // 2 + 4] = b"\xff\0\xff\0"
    for broken in (whole[: len(whole) // 2], whole[:-5], bytes(flipped)):
        path = write(tmp_path / (name + packing), broken)
        with pytest.raises(ValueError, match=rf"^{path}: broken \w+ file after line \d+: [^\n]+$"):
            rows(path)


@pytest.mark.parametrize("layout", COLUMNS)
def test_damaged_columns_are_told_in_a_line(tmp_path, layout):
    whole = COLUMNS[layout]([{"a": f"text {number}"} for number in range(300)])
    path = write(tmp_path / "a", whole[:-400])
    with pytest.raises(ValueError, match=rf"^{path}: broken \w+ file after row 0: [^\n]+$"):
        rows(path)


@pytest.mark.parametrize("packing", [*PACKINGS][1:])
def test_a_line_without_end_is_read_in_bounded_memory(tmp_path, packing, monkeypatch):
    monkeypatch.setattr(bounded_json, "MAX_BYTES", 4 << 20)
    path = write(tmp_path / "a", PACKINGS[packing](b"a" * (100 << 20)))
    tracemalloc.start()
    try:
        ((number, line),) = opener.read_lines(path)
        assert number == 1 and len(line) <= (4 << 20) + opener.BLOCK
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content", [as_lines([{"a": 1}]), PACKINGS[".zst"](as_lines([{"a": 1}])), *COLUMNS.values()]
)
def test_remote_files_are_read_as_local_ones_and_metered(tmp_path, content):
    content = content if isinstance(content, bytes) else content([{"a": 1}])
    local, remote = write(tmp_path / "a", content), f"ram://opener/{tmp_path.name}"
    with tf.io.gfile.GFile(remote, "wb") as file:
        file.write(content)
    for path in (local, remote):
        with opener.ReadingMeter(len(content)).active() as meter:
            assert rows(path) == ([{"a": 1}], [])
        assert meter.read == len(content)


class TestFolders:
    def test_texts_of_all_folders_are_found_and_the_rest_is_told(self, tmp_path, caplog):
        for name in ("free.txt", "pos/1.TXT", "pos/deep/er/2.txt.GZ", "neg/1.Txt.xz"):
            write(tmp_path / name, "text")
        for name in (".ipynb_checkpoints/1.txt", "pos/._1.txt", "neg/notes.md", "a.json"):
            write(tmp_path / name, "left out")
        (tmp_path / "neg" / "loop").symlink_to(tmp_path)
        found = list(opener.text_files(str(tmp_path)))
        assert found == ["free.txt", "neg/1.Txt.xz", "pos/1.TXT", "pos/deep/er/2.txt.GZ"]
        assert caplog.messages == [
            f"{tmp_path}: left out: 2 hidden (such as .ipynb_checkpoints), 3 not .txt (such as "
            "a.json)"
        ]

    def test_links_that_lead_to_each_other_are_followed_once(self, tmp_path):
        for here, there in ("ab", "ba"):
            write(tmp_path / here / f"{here}.txt", "text")
            (tmp_path / here / "link").symlink_to(tmp_path / there)
        found = list(opener.text_files(str(tmp_path)))
        assert found == ["a/a.txt", "a/link/b.txt", "b/b.txt", "b/link/a.txt"]

    def test_remote_texts_are_listed_without_a_request_for_each(self, monkeypatch):
        class Bucket:
            FILES = {
                "gs://b/": ["pos/", "1.txt", ".git/"],
                "gs://b/pos": [f"{i}.txt" for i in "23"],
            }
            listdir = staticmethod(FILES.__getitem__)

        monkeypatch.setattr(opener.file_systems, "gfile", Bucket)
        assert list(opener.text_files("gs://b")) == ["1.txt", "pos/2.txt", "pos/3.txt"]

    def test_remote_folders_likewise(self):
        for name in ("pos/1.txt", "pos/.hidden.txt", "b.txt"):
            tf.io.gfile.makedirs("ram://folder/pos")
            with tf.io.gfile.GFile(f"ram://folder/{name}", "w") as file:
                file.write("text")
        assert list(opener.text_files("ram://folder")) == ["b.txt", "pos/1.txt"]


def test_prose_is_read_whole_unless_it_begins_as_json(tmp_path):
    def units(name, content):
        found = opener.read_rows(write(tmp_path / name, content), may_be_prose=True)
        return [(row.unit, row.value) for row in found]

    prose = "[1] A note.\n\n{Not} JSON.\n"
    lines = [(opener.PROSE, line) for line in prose.splitlines(keepends=True)]
    for name in ("a.txt", "a", "a.md"):
        assert units(name, BOM + prose.encode()) == lines
    for name, ending in itertools.product(["c4.json", "c4.txt", "c4"], [b"", b"\n{cut"]):
        content = b'{"text": "one"}\n{"text": "two"}' + ending
        values = [{"text": "one"}, {"text": "two"}, *([None] if ending else [])]
        assert units(name, content) == [("line", value) for value in values]
    assert units("a.txt", '[\n {\n  "text": "a"}]') == [("element", {"text": "a"})]
    assert units("a.csv", "text\na\n") == [("line", {"text": "a"})]


def test_a_table_in_a_file_of_prose_is_one_where_its_delimiter_is_given(tmp_path):
    def values(delimiter):
        table, path = opener.Table(delimiter), write(tmp_path / "a.txt", "id\ttext\n1\ta\n")
        return [row.value for row in opener.read_rows(path, table=table, may_be_prose=True)]

    assert values("\t") == [{"id": "1", "text": "a"}]
    assert values(None) == values("|") == ["id\ttext\n", "1\ta\n"]


@pytest.mark.parametrize(
    ("pieces", "packing"), [([1, 1, 2], ""), ([1, 3], ".gz"), ([2, 2], ".zst")]
)
def test_what_a_pipe_gives_little_by_little_is_known_likewise(tmp_path, pieces, packing):
    content = PACKINGS[packing](BOM + b'[{"a": 1}]')
    os.mkfifo(tmp_path / "pipe")
    # The reader is there when it is opened; each write is then what one read gives, or less.
    writer = threading.Thread(target=write_pieces, args=(tmp_path / "pipe", content, pieces))
    writer.start()
    assert rows(str(tmp_path / "pipe")) == ([{"a": 1}], [])
    writer.join()


def write_pieces(path, content, sizes):
    with open(path, "wb", buffering=0) as file:
        for size in [*sizes, len(content)]:
            file.write(content[:size])
            content = content[size:]


def test_a_frame_of_one_byte_does_not_hide_what_follows(tmp_path):
    frames = (BOM[:1], BOM[1:] + b'[{"a"', b": 1}]")
    path = write(tmp_path / "a.zst", b"".join(map(PACKINGS[".zst"], frames)))
    assert rows(path) == ([{"a": 1}], [])
    twice = PACKINGS[".zst"](b"P") + PACKINGS[".zst"](b"K\x03\x04")
    with pytest.raises(ValueError, match="a ZIP archive"):
        rows(write(tmp_path / "b.zst", twice))


def test_a_package_that_a_text_needs_is_told_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = write(tmp_path / "a.txt.zst", PACKINGS[".zst"](b"text"))
    for read in (opener.read_text, lambda x: list(opener.read_lines(x))):
        with pytest.raises(extras.MissingExtraError, match=f"^{path}: "):
            read(path)


def test_nothing_is_logged_where_nothing_is_left_out(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    write(tmp_path / "folder" / "a.txt", "text")
    assert list(opener.text_files(str(tmp_path / "folder"))) == ["a.txt"]
    rows(write(tmp_path / "a.csv", 'text,label\n"a, ""b""",c\n'))
    assert not caplog.messages
