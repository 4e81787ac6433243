"""Fields of raw examples: read if they are good, else named with their example."""

import pytest

from etcmodel.preprocessing import json_fields

FIELDS = json_fields.Fields("e", {"text": "t", "none": None, "list": ["a"], "mixed": ["a", 1]})


def test_good_fields_are_returned():
    assert FIELDS.get("none") is None and FIELDS.text("text") == "t"
    assert FIELDS.text("none", optional=True) is None
    assert FIELDS.text("gone", optional=True) is None
    assert FIELDS.list_of("list", str, "strings") == ["a"]
    assert FIELDS.list_of("none", str, "strings", optional=True) == []


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            lambda: FIELDS.get("gone"),
            "example 'e': field `gone` is missing. Its fields: ['list', 'mixed', 'none', 'text']",
        ),
        (
            lambda: FIELDS.text("gone"),
            "example 'e': field `gone` is missing. Its fields: ['list', 'mixed', 'none', 'text']",
        ),
        (
            lambda: FIELDS.text("list"),
            "example 'e': field `list` must be a string. Received: ['a']",
        ),
        (
            lambda: FIELDS.list_of("mixed", str, "strings"),
            "example 'e': field `mixed` must be a list of strings. Received: ['a', 1]",
        ),
        (
            lambda: json_fields.Fields(7, {}).get("x"),
            "example 7: field `x` is missing. Its fields: []",
        ),
        (
            lambda: json_fields.require_object([], "a page"),
            "a page must be a JSON object. Received: []",
        ),
    ],
)
def test_bad_fields_are_named_with_their_example(read, message):
    with pytest.raises(ValueError) as error_info:
        read()
    assert str(error_info.value) == message


def test_a_truth_value_is_no_integer():
    assert json_fields.is_int(3) and not json_fields.is_int(True) and not json_fields.is_int(3.0)
    assert json_fields.is_list_of([1, 2], int) and not json_fields.is_list_of([1, True], int)
    assert json_fields.is_list_of([True], bool) and json_fields.is_list_of([], dict)
    assert not json_fields.is_list_of((1,), int)


def test_long_values_are_cut():
    assert json_fields.shown("x" * 78) == repr("x" * 78)
    assert json_fields.shown("x" * 79) == "'" + "x" * 76 + "..."
