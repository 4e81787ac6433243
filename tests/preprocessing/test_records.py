"""TF examples are the same bytes, however they are built."""

import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel import preprocessing
from etcmodel.preprocessing import records
from etcmodel.preprocessing.records import serialize

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    st.lists(INT64, max_size=20),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
    st.lists(st.text(max_size=3), min_size=1, max_size=5),
    st.lists(st.binary(max_size=3), min_size=1, max_size=5),
)


COUNTS = st.integers(0, 1100)
PARTS = {
    int: st.one_of(
        st.lists(INT64, max_size=20),
        st.builds(preprocessing.Repeated, INT64, COUNTS),
        st.builds(range, st.integers(0, 5000), st.integers(0, 5000)),
        st.builds(range, st.integers(-600, 600), st.integers(0, 600), st.integers(1, 3)),
    ),
    float: st.one_of(
        st.lists(st.floats(width=32), max_size=5),
        st.builds(preprocessing.Repeated, st.floats(width=32), COUNTS),
    ),
}


def feature(values):
    """A `tf.train.Feature`, built of whole messages."""
    kind = type(values[0]) if values else int
    if kind is int:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if kind is float:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    encoded = [value.encode() if kind is str else value for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))


@given(
    st.dictionaries(st.one_of(st.text(max_size=4), st.text("aé", max_size=3)), VALUES, max_size=5)
)
def test_examples_are_those_that_are_built_of_whole_messages(features):
    made = {name: feature(values) for name, values in features.items()}
    expected = tf.train.Example(features=tf.train.Features(feature=made))
    assert serialize(features) == expected.SerializeToString(deterministic=True)
    assert records.to_tf_example(features) == expected


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16383, 16384, 70000])
def test_lengths_are_written_as_they_are_read(length):
    features = {"x" * length: ["y" * length], "numbers": [1] * length}
    made = {name: feature(values) for name, values in features.items()}
    expected = tf.train.Example(features=tf.train.Features(feature=made))
    assert serialize(features) == expected.SerializeToString(deterministic=True)


def test_what_a_message_does_not_take_is_refused():
    for values in ([1, "a"], ["a", 1], [1, 0.5], [None]):
        with pytest.raises(TypeError):
            serialize({"x": values})
    # A ValueError, which is an example's own fault.
    for features in ({"x": [2**63]}, {"x": ["\ud800"]}, {"\ud800": [1]}):
        with pytest.raises(ValueError):
            serialize(features)
    with pytest.raises(ValueError) as error_info:
        serialize({"y": [1], "query": ["a", "b\ud83d"]})
    assert str(error_info.value) == (
        "feature 'query' has half of a surrogate pair, no character. Received: 'b\\ud83d'"
    )


def test_a_feature_without_values_is_a_list_of_integers():
    example = records.to_tf_example({"empty": []})
    assert example.features.feature["empty"].WhichOneof("kind") == "int64_list"


def numbers(part):
    return [part.number] * part.count if isinstance(part, preprocessing.Repeated) else list(part)


@settings(max_examples=200)
@given(st.one_of(*(st.lists(parts, max_size=5) for parts in PARTS.values())))
def test_joined_parts_are_written_as_the_list_that_they_are(parts):
    joined = preprocessing.Joined(*parts)
    plain = [number for part in parts for number in numbers(part)]
    assert list(map(repr, joined)) == list(map(repr, plain))
    serialized = [
        records.to_tf_example({"x": values}).SerializeToString() for values in (joined, plain)
    ]
    assert serialized[0] == serialized[1]


def test_zeros_of_both_signs_and_kinds_are_told_apart():
    for number in (0, 0.0, -0.0, 1, 1.0):
        values = preprocessing.padded([], 300, number)
        expected = feature([number] * 300).SerializeToString()
        assert records.to_tf_example({"x": values}).features.feature["x"].SerializeToString() == (
            expected
        )


def test_padding_fills_a_list_up_and_takes_nothing_from_a_longer_one():
    assert preprocessing.padded([5, 6], 4, -1) == [5, 6, -1, -1]
    assert preprocessing.padded([5, 6], 4) == [5, 6, 0, 0]
    for length in (2, 1, None):
        assert preprocessing.padded([5, 6], length) == [5, 6]
    for length, values in ((5, [7, 7, 0, 0, 0]), (2, [7, 7]), (1, [7, 7]), (None, [7, 7])):
        assert preprocessing.padded(preprocessing.Repeated(7, 2), length) == values


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.append(1),
        lambda values: values.__setitem__(0, 1),
        lambda values: values.__delitem__(0),
        lambda values: values.__iadd__([1]),
        lambda values: values.sort(),
    ],
)
def test_a_padded_list_cannot_be_changed_behind_what_is_written(change):
    values = preprocessing.padded([2, 1], 4)
    with pytest.raises(TypeError, match=r"cannot be changed .*: change a copy"):
        change(values)
    assert values == [2, 1, 0, 0]


def test_a_padded_list_does_not_change_with_what_it_was_made_of():
    values = [2, 1]
    padded = preprocessing.padded(values, 4)
    values.append(3)
    assert records.to_tf_example({"x": padded}) == records.to_tf_example({"x": [2, 1, 0, 0]})


@pytest.mark.parametrize("number", [np.int64(7), np.int32(-1), np.float32(0.1)])
def test_numbers_of_other_types_pad_too(number):
    first = 1.0 if isinstance(number, np.floating) else 1
    values = preprocessing.padded([first], 300, number)
    assert records.to_tf_example({"x": values}) == records.to_tf_example({"x": list(values)})


def test_copies_of_a_padded_list_are_written_alike():
    values = preprocessing.padded([2, 1], 300)
    for other in (copy.deepcopy(values), pickle.loads(pickle.dumps(values)), list(values)):
        assert other == values
        assert records.to_tf_example({"x": other}) == records.to_tf_example({"x": values})
