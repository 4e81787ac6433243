"""Fields of raw examples: read if they are good, else named with their example."""

import pytest

from etcmodel.preprocessing import json_fields

RAW = {"text": "t", "blank": " ", "none": None, "list": ["a"], "mixed": ["a", 1]}
FIELDS = json_fields.Fields("e", RAW)
THERE = "Its fields: ['blank', 'list', 'mixed', 'none', 'text']"


def test_good_fields_are_returned():
    assert FIELDS.get("none") is None and FIELDS.text("text") == "t"
    assert FIELDS.text("none", optional=True) is None
    assert FIELDS.text("gone", optional=True) is None
    assert FIELDS.list_of("list", str, "strings") == ["a"]
    assert FIELDS.list_of("none", str, "strings", optional=True) == []


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: FIELDS.get("gone"), f"example 'e': field `gone` is missing. {THERE}"),
        (lambda: FIELDS.text("gone"), f"example 'e': field `gone` is missing. {THERE}"),
        (
            lambda: json_fields.Fields(7, {}).get("x"),
            "example 7: field `x` is missing. Its fields: []",
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
            lambda: FIELDS.check_labels("text", "none"),
            "example 'e': field `none` is missing, and training needs it; elsewhere give "
            f"--is_training=false. {THERE}",
        ),
        (
            lambda: FIELDS.filled_text("blank"),
            "example 'e': field `blank` must not be empty. Received: ' '",
        ),
        (
            lambda: FIELDS.objects("list"),
            "example 'e': field `list` must be a list of objects, or lists of their fields, all "
            "as long. Received: ['a']",
        ),
        (
            lambda: FIELDS.columns("c", {"a": [1], "b": []}, ("a", "b")),
            "example 'e': field `c` must have lists `a`, `b`, as long. Received: {'a': [1], "
            "'b': []}",
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


def test_the_names_of_a_table_are_all_told_and_those_of_a_hostile_object_are_cut():
    message = str(json_fields.Fields("e", {f"column {i}": 0 for i in range(20)}).missing("x", "y"))
    assert message.startswith("example 'e': field `x` (or `y`) is missing. Its fields: ['column 0'")
    assert message.endswith("'column 9']")
    assert len(str(json_fields.Fields("e", {"x" * 9999: 0, 3: 1}).missing("x"))) < 500


def test_lists_of_fields_are_the_objects_that_hugging_face_datasets_makes_them_of():
    objects = [{"a": 1, "b": [2]}, {"a": 3, "b": []}]
    assert json_fields.objects_of({"a": [1, 3], "b": [[2], []]}) == objects
    assert json_fields.objects_of(objects) == objects
    assert json_fields.objects_of({"a": [], "b": []}) == json_fields.objects_of([]) == []
    assert json_fields.Fields("e", {"x": {"a": [1]}}).objects("x") == [{"a": 1}]
    assert json_fields.Fields("e", {"x": None}).objects("x", optional=True) == []


@pytest.mark.parametrize(
    "value", [None, {}, {"a": 1}, {"a": [1], "b": []}, {"a": [1], "b": "c"}, [1], "ab"]
)
def test_other_values_are_no_objects(value):
    assert json_fields.objects_of(value) is None
