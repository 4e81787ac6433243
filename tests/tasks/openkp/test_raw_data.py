"""Reading OpenKP's lines, and the errors of malformed ones."""

import json
import logging

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etcmodel.tasks.openkp import examples, phrases, vdom
from tests.tasks.openkp.pages import element, page, write_lines

WORDS = ("the", "red", "rose")


class TestReadLines:
    def test_numbers_the_lines_and_leaves_out_blank_ones(self, tmp_path):
        path = write_lines(tmp_path / "a.jsonl", [page("one"), "\n", page("two"), " \n"])
        lines = list(examples.read_lines(path))
        assert [raw["place"] for raw in lines] == ["line 1", "line 3"]
        assert examples.parse_line(lines[1]).words == ("two",)

    def test_elements_are_named_as_such(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_text(json.dumps([page("one"), {}]))
        _, bad = examples.read_lines(path)
        with pytest.raises(ValueError, match="^element 1: "):
            examples.parse_line(bad)


class TestReadExamples:
    def test_many_are_counted_and_the_first_of_them_named(self, tmp_path, caplog):
        path = write_lines(tmp_path / "a.jsonl", [page("one"), *["{\n"] * 30])
        with caplog.at_level(logging.WARNING):
            list(examples.read_examples(path))
        assert len(caplog.messages) == 21
        assert caplog.messages[-1] == f"{path}: 30 of 31 pages skipped"


class TestParseExample:
    def test_key_phrases_are_words_and_empty_ones_vanish(self):
        raw = page("a red rose", key_phrases=(["red", "rose"], ["a red"], [], [""]))
        assert examples.parse_example(raw).key_phrases == (("red", "rose"), ("a", "red"))

    def test_words_stand_between_single_blanks(self):
        raw = page("red\u00a0fox ", "den\tand", key_phrases=(["Oak", "", "door"], ["a\u00a0b"]))
        example = examples.parse_example(raw)
        assert example.words == ("red\u00a0fox", "", "den\tand")
        assert example.key_phrases == (("Oak", "", "door"), ("a\u00a0b",))

    def test_labels_may_be_left_out(self):
        raw = page("a red rose", KeyPhrases=None)
        assert examples.parse_example(raw).key_phrases is None


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
            "global_font_ids": 5,  # 12.5 is rounded to 12.
            "global_parent_font_ids": 23,
        }
        assert vdom.features([parsed]) == {name: [value] for name, value in expected.items()}

    def test_an_element_has_the_words_of_the_page_with_all_their_blanks(self):
        words = phrases.split("red\u00a0fox  den")
        parsed = vdom.parse([element("red\u00a0fox ", 0), element("den", 2)], words)
        assert [(e.begin, e.end) for e in parsed] == [(0, 2), (2, 3)]
        with pytest.raises(ValueError, match=r"the words 0 to 3 of the page, 'red\\xa0fox  den'\."):
            vdom.parse([{**element("red\u00a0fox den", 0), "end_idx": 3}], words)

    @given(size=st.one_of(st.floats(-5, 70), st.integers(0, 140).map(lambda n: n / 2)))
    @example(size=9.5)
    @example(size=29.6)
    @settings(max_examples=200)
    def test_font_sizes_are_rounded_before_the_bucket(self, size):
        boundaries = [1, *range(9, 26), 30, 35, 40, 45, 50]
        expected = sum(np.rint(size) >= boundary for boundary in boundaries)
        assert vdom.font_size_to_font_id(size) == expected
        (parsed,) = vdom.parse([element("the red rose", 0, n8=size, n18=9.5)], WORDS)
        found = vdom.features([parsed])
        assert found["global_font_ids"] == [expected]
        assert found["global_parent_font_ids"] == [vdom.font_size_to_font_id(10)]

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
