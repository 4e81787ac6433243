"""The result of a converter, and its conversion to records."""

import dataclasses

import tensorflow as tf

from etcmodel.preprocessing import raw_files
from etcmodel.preprocessing.serialization import serialize

__all__ = ["BadExampleError", "Converted", "convert_example", "to_tf_example"]


class BadExampleError(ValueError):
    """Raised for an input that cannot be converted; the message is written for the user.

    >>> from etcmodel import preprocessing
    >>> issubclass(preprocessing.BadExampleError, ValueError)
    True
    """


@dataclasses.dataclass(frozen=True)
class Converted:
    """The result of converting one raw example.

    Attributes:
        features: list of dict, one per TF example, from feature name to list of int, float or str
            (lists from `preprocessing.padded` are written fastest).
        counts: dict of str to int. Summed over all examples in the statistics.
        lengths: dict of str to int. Averaged over all examples in the statistics.
        lines: dict from a name in `Job.line_files` to a line (str) for that file.
        problem: str. What is wrong with a malformed example; '' for nothing.

    >>> from etcmodel import preprocessing
    >>> converted = preprocessing.Converted([{"token_ids": [2, 7, 3]}], counts={"examples": 1})
    >>> len(converted.features), converted.problem
    (1, '')
    """

    features: list
    counts: dict = dataclasses.field(default_factory=dict)
    lengths: dict = dataclasses.field(default_factory=dict)
    lines: dict = dataclasses.field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of_one(cls, converted, *, drop_reasons, counts, lines=None):
        """Makes the result for a raw example that yields one TF example, or is dropped.

        Args:
            converted: the result of a task's `make_features`, with `features` (None if dropped),
                `drop_reason` (str or None), `num_long_tokens` and `num_global_tokens`.
            drop_reasons: iterable of str. All possible reasons: each is counted.
            counts: dict of str to int. Further counts.
            lines: see the attribute `lines`.
        """
        dropped = {
            f"dropped_{reason}": int(reason == converted.drop_reason) for reason in drop_reasons
        }
        return cls(
            features=[] if converted.features is None else [converted.features],
            counts={**dropped, **counts},
            lengths={
                "long_tokens": converted.num_long_tokens,
                "global_tokens": converted.num_global_tokens,
            },
            lines=lines or {},
        )


def convert_example(convert, raw):
    """Converts a raw example.

    Args:
        convert: function from a raw example to a `Converted`; may raise a ValueError.
        raw: the example, or a placeholder from `raw_files.unreadable`.
    Returns:
        (`Converted`, list of bytes: its serialized TF examples). The `problem` of the `Converted`
        describes a malformed example.
    """
    try:
        raw_files.check_readable(raw)
        converted = convert(raw)
        # Text may contain unpaired surrogates, which JSON can write and UTF-8 cannot.
        return converted, list(map(serialize, converted.features))
    except ValueError as error:
        return Converted(features=[], problem=str(error)), []


def to_tf_example(features):
    """Makes a `tf.train.Example` from a dict of feature name to list of int, float, str or bytes.

    >>> from etcmodel import preprocessing
    >>> example = preprocessing.to_tf_example({"token_ids": [2, 7, 3], "name": ["one"]})
    >>> example.features.feature["token_ids"].int64_list.value
    [2, 7, 3]
    """
    return tf.train.Example.FromString(serialize(features))
