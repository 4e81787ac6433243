"""TF examples are the same bytes, however they are built."""

import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.preprocessing import records

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    st.lists(INT64, max_size=20),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
    st.lists(st.text(max_size=3), min_size=1, max_size=5),
    st.lists(st.binary(max_size=3), min_size=1, max_size=5),
)


def feature(values):
    """A `tf.train.Feature`, built of whole messages."""
    kind = type(values[0]) if values else int
    if kind is int:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if kind is float:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    encoded = [value.encode() if kind is str else value for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=5))
def test_examples_are_those_that_are_built_of_whole_messages(features):
    made = {name: feature(values) for name, values in features.items()}
    expected = tf.train.Example(features=tf.train.Features(feature=made))
    example = records.to_tf_example(features)
    serialize = tf.train.Example.SerializeToString
    assert serialize(example, deterministic=True) == serialize(expected, deterministic=True)


def test_a_feature_without_values_is_a_list_of_integers():
    example = records.to_tf_example({"empty": []})
    assert example.features.feature["empty"].WhichOneof("kind") == "int64_list"
