"""Raw files of any content: values and lines within the bounds, and the places of all others."""

import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel import bounded_json, json_stream, opener
from etcmodel.preprocessing import raw_files

TEXT = st.text(alphabet='"\\[]{},: aé\n')
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)
SPACE = st.text(alphabet=" \t\r\n", max_size=3)
MIB = 1 << 20


def values(content):
    return list(json_stream.read(io.BytesIO(content)))


def write(path, content):
    if path.suffix == ".gz":
        content = gzip.compress(content, 1)
    path.write_bytes(content)
    return str(path)


@given(st.lists(VALUES, max_size=5), SPACE, st.integers(1, 9), st.booleans())
def test_an_array_is_cut_into_its_elements_wherever_blocks_end(elements, space, block, is_ascii):
    texts = [json.dumps(element, ensure_ascii=is_ascii) for element in elements]
    content = f"{space}[{space}" + f"{space},{space}".join(texts) + f"{space}]{space}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "BLOCK", block)
        assert values(content.encode()) == [(element, "") for element in elements]


@pytest.mark.slow
@given(st.lists(st.dictionaries(TEXT, VALUES), min_size=1, max_size=4), SPACE, st.integers(1, 9))
def test_objects_one_after_another_are_read_wherever_blocks_end(objects, space, block):
    content = space.join(map(json.dumps, objects))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "BLOCK", block)
        assert values(content.encode()) == [(one, "") for one in objects]


@given(st.text(alphabet='[]{}",:1 ta\\', max_size=12))
def test_what_json_takes_for_an_array_is_taken_and_all_else_is_refused(text):
    content = f"[{text}"
    try:
        expected = json.loads(content)
    except ValueError:
        with pytest.raises(json_stream.JsonPlaceError):
            values(content.encode())
    else:
        assert values(content.encode()) == [(element, "") for element in expected]


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        ("[" * 1000 + "]" * 1000, "nested deeper than 100 levels"),
        ('{"a":' * 100_000 + "0" + "}" * 100_000, "nested deeper than 100 levels"),
        ('{"a": ' + "9" * 5000 + "}", "an integer of too many digits"),
        ('"' + "a" * bounded_json.MAX_BYTES + '"', "longer than 32 MiB"),
    ],
    ids=["1,000 levels", "100,000 levels", "5,000 digits", "33 MB"],
)
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_an_element_beyond_the_bounds_is_skipped_with_its_place(
    tmp_path, caplog, element, problem, name
):
    path = write(tmp_path / name, f'[{{"x": 1}}, {element}, {{"y": 2}}]'.encode())
    read = raw_files.example_reader(raw_files.read_json_elements, dict)
    assert list(read(path)) == [{"x": 1}, {"y": 2}]
    assert caplog.messages == [
        f"skipped {path}: element 1: {problem}",
        f"{path}: 1 of 3 examples skipped",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2", "malformed JSON at line 1, column 6: the file ends within the array"),
        ("[1,]", "malformed JSON at line 1, column 4: Expecting value"),
        ("[1 2]", "malformed JSON at line 1, column 4: Expecting ',' delimiter"),
        ("[1]\n[2]", "malformed JSON at line 2, column 1: Extra data"),
        ('[{"a": 1], 2]', "malformed JSON at line 1, column 9: Expecting ',' delimiter"),
        ('["é", "é\n"]', "malformed JSON at line 1, column 9: Invalid control character at"),
        ("{},{}", "malformed JSON at line 1, column 3: Expecting value"),
        (b'["\xc3\xa9",\n"\xc3\xa9\xff"]', "line 2: invalid UTF-8 at character 3"),
        ("[1]".encode("utf-16"), "the text is in UTF-16: save it in UTF-8"),
    ],
)
def test_a_file_that_is_no_such_json_is_named_with_the_place(tmp_path, content, message):
    content = content if isinstance(content, bytes) else content.encode()
    path = write(tmp_path / "a.json", content)
    with pytest.raises(ValueError, match=f"^{path}: {message}"):
        list(raw_files.read_json_values(path))


class TestMember:
    @given(
        st.dictionaries(st.text(alphabet='"\\{}[]:,D', max_size=3), VALUES, max_size=3),
        st.lists(VALUES, max_size=4),
        st.integers(0, 3),
        st.integers(1, 9),
    )
    def test_elements_are_those_of_the_whole_object(self, others, elements, place, block):
        members = [*others.items()]
        members.insert(min(place, len(members)), ("Data", elements))
        content = json.dumps(dict(members), indent=block // 5, ensure_ascii=False).encode()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_stream, "BLOCK", block)
            found = list(json_stream.read(io.BytesIO(content), "Data"))
        assert found == [(element, "") for element in elements]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ('{"Data": [1, 2', "line 1, column 15: the file ends within the array"),
            ('{"Data": [1, 2]', "line 1, column 16: the file ends within the object"),
            ('{"Data": [1 2]}', "line 1, column 13: Expecting ',' delimiter"),
            ('{"Data": []}\n{}', "line 2, column 1: Extra data"),
            ('{"Data": {"Data": [1]}}', "expected a JSON object with an array `Data`"),
        ],
    )
    def test_other_files_are_named_with_the_place(self, tmp_path, content, message):
        path = write(tmp_path / "a.json", content.encode())
        with pytest.raises(ValueError, match=f"^{path}: .*{message}"):
            list(raw_files.read_json_elements(path, "Data"))

    def test_an_element_beyond_the_bounds_does_not_hide_the_next(self, tmp_path):
        content = b'{"a": 1, "Data": [' + b"[" * 200 + b"]" * 200 + b', {"y": 2}], "b": {}}'
        path = write(tmp_path / "a.json.gz", content)
        (_, first), second = raw_files.read_json_elements(path, "Data")
        with pytest.raises(ValueError, match="nested deeper than 100 levels"):
            raw_files.check_readable(first)
        assert second == ("element 1", {"y": 2})


class CountedReads(io.BytesIO):
    """A file that counts how often it is read."""

    num_reads = 0

    def read(self, size=-1):
        self.num_reads += 1
        return super().read(size)


@pytest.mark.parametrize(
    "content",
    [
        b" " * 20 * MIB + b"[1]",
        b"[1" + b"\n" * 20 * MIB + b",2]" + b" " * MIB,
        b'["' + b"x" * 20 * MIB + b'"]',
        b'["' + b'\\"' * 10 * MIB + b'"]',
    ],
    ids=["space before", "space within", "a string", "escapes"],
)
def test_space_and_long_strings_are_read_in_blocks(content):
    file = CountedReads(content)
    for _ in json_stream.read(file):
        pass
    assert file.num_reads <= 25


class TestLines:
    @given(st.text(alphabet="a \t\n\r\fé", max_size=30), st.integers(1, 9))
    def test_lines_are_those_of_the_file_that_are_not_white_space(self, tmp_path_factory, text, n):
        path = write(tmp_path_factory.mktemp("lines") / "a.txt", text.encode())
        with open(path, "rb") as file:
            lines = [(i, line.decode()) for i, line in enumerate(file, 1)]
        assert list(raw_files.read_lines(path, keep_blank=True)) == lines
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_stream, "BLOCK", n)
            found = list(raw_files.read_lines(path))
        # The space before a line counts for columns only: it may be cut off where a block ends.
        expected = [(i, line.lstrip()) for i, line in lines if line.strip()]
        assert [(i, line.lstrip()) for i, line in found] == expected
        assert all(dict(lines)[i].endswith(line) for i, line in found)

    def test_a_line_beyond_the_bounds_is_cut_off_and_refused(self, tmp_path):
        long = "é" * (bounded_json.MAX_BYTES // 2 + 1)
        path = write(tmp_path / "a.jsonl.gz", f'"{long}"\n{{"a": 1}}'.encode())
        (_, first), (number, second) = raw_files.read_lines(path)
        assert len(first.encode("utf-8", "surrogateescape")) <= bounded_json.MAX_BYTES + MIB
        with pytest.raises(ValueError, match="longer than 32 MiB"):
            opener.load_json_line(first)
        assert (number, opener.load_json_line(second)) == (2, {"a": 1})

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ('{"a":' * 1000, "nested deeper than 100 levels"),
            ("9" * 5000, "an integer of too many digits"),
        ],
    )
    def test_a_deep_line_or_a_number_without_end_is_refused(self, line, problem):
        with pytest.raises(ValueError, match=problem):
            opener.load_json_line(line)

    def test_blank_lines_are_passed_in_blocks(self, tmp_path, monkeypatch):
        file = CountedReads(b"\n" * 20 * MIB + b"a\n")
        monkeypatch.setattr(opener, "open_bytes", lambda path: file)
        assert list(raw_files.read_lines("x")) == [(20 * MIB + 1, "a\n")]
        assert file.num_reads <= 25


def test_a_file_that_cannot_be_read_to_its_end_is_named(monkeypatch):
    class Failing(io.FileIO):
        def __init__(self, path):
            super().__init__("/dev/null")

        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(io, "FileIO", Failing)
    for reader in (raw_files.read_lines, raw_files.read_json_values):
        with pytest.raises(OSError, match="Input/output error: 'x.jsonl'"):
            list(reader("x.jsonl"))
