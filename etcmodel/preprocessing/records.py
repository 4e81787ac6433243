"""What a converter returns, and how it becomes a record."""

import dataclasses

import tensorflow as tf

__all__ = ["BadExampleError", "Converted", "to_tf_example"]


class BadExampleError(ValueError):
    """An input that cannot be converted; its message is all a user needs."""


@dataclasses.dataclass(frozen=True)
class Converted:
    """What a converter makes of one raw example.

    Attributes:
        features: list of dict, one a TF example, of feature name to list of int, float or str.
        counts: dict of str to int. Added up over all examples in the statistics.
        lengths: dict of str to int. Averaged over all examples in the statistics.
        lines: dict of a name of `Job.line_files` to a line (str) for that file.
        problem: str. What is wrong with a malformed example; '' for nothing.
    """

    features: list
    counts: dict = dataclasses.field(default_factory=dict)
    lengths: dict = dataclasses.field(default_factory=dict)
    lines: dict = dataclasses.field(default_factory=dict)
    problem: str = ""


def to_tf_example(features):
    """A `tf.train.Example` of a dict of feature name to list of int, float, str or bytes."""
    return tf.train.Example(
        features=tf.train.Features(
            feature={name: _feature(values) for name, values in features.items()}
        )
    )


def _feature(values):
    if values and isinstance(values[0], str | bytes):
        encoded = [v.encode("utf-8") if isinstance(v, str) else v for v in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
