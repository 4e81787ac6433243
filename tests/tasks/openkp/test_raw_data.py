"""Reading OpenKP's lines, and the errors of malformed ones."""

import gzip
import json

import pytest

from etcmodel.tasks.openkp import raw_data, vdom
from tests.tasks.openkp.pages import element, page, write_lines

WORDS = ("the", "red", "rose")


class TestReadLines:
    def test_numbers_the_lines_and_leaves_out_blank_ones(self, tmp_path):
        path = write_lines(tmp_path / "a.jsonl", [page("one"), "\n", page("two"), " \n"])
        lines = list(raw_data.read_lines(path))
        assert [raw["line_number"] for raw in lines] == [1, 3]
        assert raw_data.parse_line(lines[1]).words == ("two",)

    def test_a_compressed_file_reads_the_same(self, tmp_path):
        pages = [page("one"), page("Ünïted 光 words")]
        path = write_lines(tmp_path / "a.jsonl", pages)
        packed = tmp_path / "a.jsonl.gz"
        packed.write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
        assert list(raw_data.read_examples(packed)) == list(raw_data.read_examples(path))

    def test_a_truncated_gzip_file_is_named(self, tmp_path):
        path = tmp_path / "a.jsonl.gz"
        content = "".join(f"{json.dumps(page(f'word {i}'))}\n" for i in range(2000))
        path.write_bytes(gzip.compress(content.encode())[:-200])
        with pytest.raises(ValueError, match=r"a.jsonl.gz: broken gzip file after line \d+"):
            list(raw_data.read_lines(path))

    def test_what_is_no_gzip_file_is_named(self, tmp_path):
        path = tmp_path / "a.jsonl.gz"
        path.write_text("{}")
        with pytest.raises(ValueError, match="a.jsonl.gz: broken gzip file after line 0"):
            list(raw_data.read_lines(path))

    def test_invalid_utf8_spoils_its_own_line_only(self, tmp_path):
        path = tmp_path / "a.jsonl"
        good = json.dumps(page("one")).encode()
        path.write_bytes(good + b'\n{"url": "\xff\xfe"}\n' + good + b"\n")
        first, bad, last = raw_data.read_lines(path)
        assert raw_data.parse_line(first) == raw_data.parse_line(last)
        with pytest.raises(ValueError, match="line 2: invalid UTF-8 at character 10"):
            raw_data.parse_line(bad)

    def test_errors_name_file_and_line(self, tmp_path):
        path = write_lines(tmp_path / "a.jsonl", [page("one"), "{nonsense\n"])
        with pytest.raises(ValueError, match="a.jsonl: line 2: malformed JSON at column 2"):
            list(raw_data.read_examples(path))


class TestParseExample:
    def test_key_phrases_are_words_and_empty_ones_vanish(self):
        raw = page("a red rose", key_phrases=(["red", "rose"], ["a red"], [], [" "]))
        assert raw_data.parse_example(raw).key_phrases == (("red", "rose"), ("a", "red"))

    def test_labels_may_be_left_out(self):
        raw = page("a red rose", KeyPhrases=None)
        assert raw_data.parse_example(raw).key_phrases is None

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"url": ""}, "a page has no field `url`"),
            ({"text": 3}, "page 'http://example.org/1': field `text` must be a string"),
            ({"text": " \n"}, "page 'http://example.org/1': the page is empty"),
            ({"KeyPhrases": ["red"]}, "field `KeyPhrases` must be a list of lists of words"),
            ({"KeyPhrases": [[1]]}, "field `KeyPhrases` must be a list of lists of words"),
        ],
    )
    def test_malformed_fields_are_named(self, change, message):
        with pytest.raises(ValueError, match=message):
            raw_data.parse_example({**page("a red rose"), **change})

    def test_a_page_must_be_an_object(self):
        with pytest.raises(ValueError, match="a page must be a JSON object"):
            raw_data.parse_example(["url"])


class TestVdom:
    def test_features_of_an_element_and_its_parent(self):
        numbers = {f"n{i}": float(i) for i in (0, 1, 2, 3, 10, 11, 12, 13)}
        numbers |= {"n4": 1.0, "n9": 1.0, "n16": 1.0, "n8": 12.5, "n18": 60.0}
        (parsed,) = vdom.parse([element("the red rose", 0, **numbers)], WORDS)
        assert (parsed.begin, parsed.end) == (0, 3)
        expected = {
            "global_x_coords": 0.0,
            "global_widths": 1.0,
            "global_y_coords": 2.0,
            "global_heights": 3.0,
            "global_parent_x_coords": 10.0,
            "global_parent_widths": 11.0,
            "global_parent_y_coords": 12.0,
            "global_parent_heights": 13.0,
            "global_block_indicator": 1,
            "global_inline_indicator": 0,
            "global_heading_indicator": 0,
            "global_leaf_indicator": 0,
            "global_bold_indicator": 1,
            "global_parent_heading_indicator": 1,
            "global_parent_leaf_indicator": 0,
            "global_parent_bold_indicator": 0,
            "global_font_ids": 5,
            "global_parent_font_ids": 23,
        }
        assert parsed.features == expected

    def test_elements_without_words_vanish(self):
        parsed = vdom.parse([element("the", 0), element("", 1), element("red rose", 1)], WORDS)
        assert [(e.begin, e.end) for e in parsed] == [(0, 1), (1, 3)]

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (None, "field `VDOM` is missing"),
            ("[{]", "field `VDOM` is malformed JSON at character 3"),
            ("{}", "field `VDOM` must be a list, not dict"),
            ([], "field `VDOM` has no element with text"),
            (["the"], "VDOM element 0: must be an object, not str"),
            ([{"text": "the"}], "VDOM element 0: `start_idx` and `end_idx` must lie in order"),
            ([element("rose bush", 2)], r"must lie in order between 0 .* and 3 .*: 2, 4"),
            ([element("red", 1), element("the", 0)], "VDOM element 1: .* between 2"),
            ([element("blue", 1)], "`text` must be the words 1 to 2 of the page, 'red'"),
            ([{**element("the", 0), "feature": [0.0] * 19}], "must be a list of 20 numbers"),
            ([element("the", 0, n3=float("nan"))], "must hold finite numbers only"),
            ([element("the", 0, n3=10**400)], "must hold finite numbers only"),
            ([element("the", 0, n3=True)], "must hold finite numbers only"),
            ([element("the", 0, n9=2.0)], "`global_bold_indicator` must be 0 or 1"),
        ],
    )
    def test_malformed_vdom_is_named(self, value, message):
        with pytest.raises(ValueError, match=message):
            vdom.parse(value, WORDS)
