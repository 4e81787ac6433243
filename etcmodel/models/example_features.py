"""Creates and reads the features of `tf.train.Example`s."""

import tensorflow as tf

__all__ = [
    "create_bytes_feature",
    "create_float_feature",
    "create_int_feature",
    "get_feature",
    "get_repeated_values",
]


def create_int_feature(values):
    """Creates a `tf.train.Feature` of integers.

    >>> from etcmodel.models import input_utils
    >>> input_utils.create_int_feature([2, 7]).int64_list.value
    [2, 7]
    """
    return tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))


def create_float_feature(values):
    """Creates a `tf.train.Feature` of floats.

    >>> from etcmodel.models import input_utils
    >>> input_utils.create_float_feature([0.5]).float_list.value
    [0.5]
    """
    return tf.train.Feature(float_list=tf.train.FloatList(value=list(values)))


def create_bytes_feature(values):
    """Creates a `tf.train.Feature` of byte strings; text is encoded as UTF-8.

    >>> from etcmodel.models import input_utils
    >>> input_utils.create_bytes_feature(["pos"]).bytes_list.value
    [b'pos']
    """
    encoded = [value.encode("utf-8") if isinstance(value, str) else value for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))


def get_repeated_values(feature_name, example):
    """Returns all values of a feature of a `tf.train.Example`.

    Raises:
        ValueError: if the example lacks the feature.

    >>> from etcmodel.models import input_utils
    >>> features = tf.train.Features(feature={"ids": input_utils.create_int_feature([2, 7])})
    >>> input_utils.get_repeated_values("ids", tf.train.Example(features=features))
    [2, 7]
    """
    if feature_name not in example.features.feature:
        raise ValueError(f"The tf.train.Example has no feature {feature_name!r}.")
    feature = example.features.feature[feature_name]
    kind = feature.WhichOneof("kind")
    return getattr(feature, kind).value if kind else []


def get_feature(feature_name, example):
    """Returns the first value of a feature of a `tf.train.Example`.

    >>> from etcmodel.models import input_utils
    >>> features = tf.train.Features(feature={"label": input_utils.create_int_feature([2, 7])})
    >>> input_utils.get_feature("label", tf.train.Example(features=features))
    2
    """
    return get_repeated_values(feature_name, example)[0]
