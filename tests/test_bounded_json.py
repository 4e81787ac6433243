"""JSON of foreign files: read as Python reads it, or refused by a ValueError of one line."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcmodel import bounded_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS | st.text(alphabet='"\\[]{}a,'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='"\\[]{}a'), inner),
)


@given(VALUES)
def test_values_within_the_bounds_are_those_of_json(value):
    text = json.dumps(value)
    assert bounded_json.loads(text) == bounded_json.loads(text.encode()) == value


def depth_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@given(VALUES, st.integers(0, 3))
def test_the_depth_is_that_of_the_value_whatever_its_strings_hold(value, bound):
    text = json.dumps(value).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_json, "MAX_DEPTH", bound)
        if depth_of(value) <= bound:
            assert bounded_json.loads(text) == value
        else:
            with pytest.raises(ValueError, match=f"nested deeper than {bound} levels"):
                bounded_json.loads(text)


def test_a_byte_order_mark_of_utf8_is_no_part_of_the_value():
    for content in (b"\xef\xbb\xbf[1]", "\ufeff[1]"):
        assert bounded_json.loads(content) == [1]


def test_infinities_are_read_as_json_reads_them():
    assert bounded_json.loads("[Infinity, 1e999]") == [math.inf, math.inf]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested deeper than 100 levels"),
        ('{"a":' * 101 + "0" + "}" * 101, "nested deeper than 100 levels"),
        ("[" + "9" * 5000 + "]", "an integer of too many digits"),
        ('"' + "a" * bounded_json.MAX_BYTES + '"', "longer than 32 MiB"),
        ("[1]".encode("utf-16"), "the text is in UTF-16: save it in UTF-8"),
        (b'["\xff"]', "can't decode byte 0xff in position 2"),
        ("[1", "Expecting ',' delimiter"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_beyond_the_bounds_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as error:
        bounded_json.loads(text)
    assert "\n" not in str(error.value)


def test_a_file_of_ones_own_may_be_given_another_bound():
    text = json.dumps("a" * (1 << 20))
    assert len(bounded_json.loads(text, max_bytes=2 << 20)) == 1 << 20
    with pytest.raises(ValueError, match="longer than 1 MiB"):
        bounded_json.loads(text, max_bytes=1 << 20)


def test_the_deepest_that_is_read_is_read():
    value = bounded_json.loads("[" * 100 + "]" * 100)
    assert depth_of(value) == 100


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a":\n 1,}', "x.json is not valid JSON: .* at line 2, column [34]. Copy it again."),
        (b'{"\xff"}', "x.json is not valid JSON: invalid UTF-8 at byte 3. Copy it again."),
        (b'{"a": ' * 200, "x.json is not valid JSON: nested deeper than 100 levels."),
        (b"[1]", "x.json must hold a JSON object, not an array. Copy it again."),
        (b"null", "x.json must hold a JSON object, not null."),
        (b"3", "x.json must hold a JSON object, not a number."),
    ],
)
def test_a_file_is_named_with_the_place_and_what_to_do(tmp_path, content, message):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(ValueError, match=f"{tmp_path}/{message}"):
        bounded_json.read_object(str(tmp_path / "x.json"), "Copy it again.")


@pytest.mark.parametrize("content", ['{"a": 1, "b": {"c": 1, "d": 2, "c": 1}}', '{"c": 1, "c": 2}'])
def test_an_object_that_says_a_thing_twice_is_refused(content):
    message = "^x.json is not valid JSON: an object has 'c' twice. Copy it again.$"
    with pytest.raises(ValueError, match=message):
        bounded_json.load_object(content, "x.json", "Copy it again.")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match=f"^{tmp_path} is a folder, and must be a file.$"):
        bounded_json.read_object(str(tmp_path))


def test_the_dict_of_a_file_is_given(tmp_path):
    (tmp_path / "x.json").write_text('{"é": 1}', encoding="utf-8")
    assert bounded_json.read_object(str(tmp_path / "x.json")) == {"é": 1}
